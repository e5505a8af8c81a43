#include "authority/stage_fetches.h"

#include <algorithm>
#include <utility>

namespace shoal {
namespace {

// Overtaken fetches of a joiner, each of which gives it the time for another: without a bound, by its word alone, it
// could keep a place that it never fills.
constexpr std::uint32_t kOvertakenFetchesMax = 12;

}  // namespace

void StageFetches::on_beat(MemberState& member, const Beat& beat, StageLine& line, bool in_round) {
  // What a joiner has fetched and does not serve yet is nothing that it could give to others.
  if (beat.version <= line.version()) member.version = beat.serving ? beat.version : Version(0);
  member.settled = beat.version == line.version() ? beat.settled_targets : 0;
  note_fetch(member, beat, line.version(), in_round);
  if (beat.leaving && !member.leaves()) member.leaving = Leaving::kSaid;
  const bool was_ready = member.ready();
  member.enter(phase_after_beat(member.phase(), beat.serving, beat.version, line.version()));
  if (member.ready() && !was_ready) detector_.note_start(loop_.now() - member.fetch.idle_since);
  line.note_had(member);
}

void StageFetches::note_fetch(MemberState& member, const Beat& beat, Version newest, bool in_round) {
  MemberFetch& fetch = member.fetch;
  if (!beat.behind || beat.version >= newest) return fetch.since.reset();
  const TimePoint now = loop_.now();
  if (fetch.since && beat.version <= fetch.from) return;
  if (fetch.since) {  // it has fetched a version, as a joiner its first, and that is not the newest any more
    const Duration took = std::min<Duration>(now - *fetch.since, times_.to_fetch());
    if (!member.ready() && ++fetch.overtaken <= kOvertakenFetchesMax) fetch.idle_since = now;
    if (hold(took + took / 2, fetch_allowed_at_, in_round))
      join_allowed_at_ = std::max(join_allowed_at_, fetch_allowed_at_);
  }
  fetch.since = now;
  fetch.from = beat.version;
}

bool StageFetches::hold(Duration time, TimePoint& allowed_at, bool in_round) {
  constexpr int kTimesApart = 10;
  const TimePoint now = loop_.now();
  if (now < allowed_at) return false;
  hold_until_ = std::max(hold_until_, now + time);
  hold_for_ = in_round ? std::max(hold_for_, time) : Duration(0);
  allowed_at = now + kTimesApart * time;
  return true;
}

void StageFetches::on_round_over() {
  hold_until_ = std::max(hold_until_, loop_.now() + std::exchange(hold_for_, Duration(0)));
}

// Nobody is one that cannot fetch, since nobody else holds the newest version.
std::vector<Session> StageFetches::squatters(const StageLine& line, const MembersOfStage& members, Duration patience,
                                             bool over) const {
  const TimePoint now = loop_.now();
  const bool to_fetch = !line.secured || line.held(members);
  std::vector<Session> squatters;
  for (const auto& [session, member] : members) {
    if (member->ready() || member->leaves() || !to_fetch || over) member->fetch.idle_since = now;
    if (now - member->fetch.idle_since > patience) squatters.push_back(session);
  }
  return squatters;
}

}  // namespace shoal
