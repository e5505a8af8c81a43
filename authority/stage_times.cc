#include "authority/stage_times.h"

#include <algorithm>
#include <utility>

#include "authority/patience.h"
#include "sync/round_budget.h"

namespace shoal {
namespace {

// Overtaken fetches of a joiner, each of which gives it the time for another: without a bound, by its word alone, it
// could keep a place that it never fills.
constexpr std::uint32_t kOvertakenFetchesMax = 12;

}  // namespace

// ---- how long things may take ----

std::uint64_t StageTimes::payload() const {
  return stage_.value < options_.payload_bytes.size() ? options_.payload_bytes[stage_.value] : 0;
}

Duration StageTimes::of_bytes(std::size_t members, std::size_t owners) const {
  if (options_.round_budget > Duration(0)) return options_.round_budget;
  return round_budget(payload(), members, owners, slowest_rate_);
}

Duration StageTimes::of_jobs() const {
  constexpr int kTurns = 3;  // a snapshot, the work beside the device, and one for what was measured on other work
  Duration longest{};
  for (const auto& [session, member] : book_.of(stage_))
    longest = std::max(longest, detector_.believed(*member, member->jobs.longest_any));
  return std::min(kTurns * longest, kTurns * kPatienceMax);
}

Duration StageTimes::to_contribute(Duration budget) const {
  return options_.round_budget > Duration(0) ? budget : kRoundBudgetFloor + of_jobs();
}

// Twice the time of a stage's whole state at the rate that rounds are planned for while none is known: a joiner's line
// may be slower than any that a round went over.
Duration StageTimes::to_serve() const {
  constexpr std::size_t kTwo = 2;  // each of so many sends in a round as much as it brings
  const Duration of_state = round_budget((1 + traits_of(options_.rule).shared_arrays) * payload(), kTwo, kTwo, 0);
  return std::max(to_fetch(), of_state + options_.membership) + detector_.start_patience();
}

void StageTimes::note_round(std::size_t members, std::size_t owners, Duration took) {
  const double seconds = seconds_of(took);
  if (stage_.value >= options_.payload_bytes.size() || members < 2 || seconds <= 0) return;
  const double rate = static_cast<double>(round_bytes(payload(), members, owners)) / seconds;
  slowest_rate_ = slowest_rate_ > 0 ? std::min(slowest_rate_, rate) : rate;
}

// ---- members on their way ----

void StageTimes::on_beat(MemberState& member, const Beat& beat, StageLine& line, bool in_round) {
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

void StageTimes::note_fetch(MemberState& member, const Beat& beat, Version newest, bool in_round) {
  MemberFetch& fetch = member.fetch;
  if (!beat.behind || beat.version >= newest) return fetch.since.reset();
  const TimePoint now = loop_.now();
  if (fetch.since && beat.version <= fetch.from) return;
  if (fetch.since) {  // it has fetched a version, as a joiner its first, and that is not the newest any more
    const Duration took = std::min<Duration>(now - *fetch.since, to_fetch());
    if (!member.ready() && ++fetch.overtaken <= kOvertakenFetchesMax) fetch.idle_since = now;
    if (hold(took + took / 2, fetch_allowed_at_, in_round))
      join_allowed_at_ = std::max(join_allowed_at_, fetch_allowed_at_);
  }
  fetch.since = now;
  fetch.from = beat.version;
}

bool StageTimes::hold(Duration time, TimePoint& allowed_at, bool in_round) {
  constexpr int kTimesApart = 10;
  const TimePoint now = loop_.now();
  if (now < allowed_at) return false;
  hold_until_ = std::max(hold_until_, now + time);
  hold_for_ = in_round ? std::max(hold_for_, time) : Duration(0);
  allowed_at = now + kTimesApart * time;
  return true;
}

void StageTimes::on_round_over() {
  hold_until_ = std::max(hold_until_, loop_.now() + std::exchange(hold_for_, Duration(0)));
}

// Nobody is one that cannot fetch, since nobody else holds the newest version.
std::vector<Session> StageTimes::squatters(const StageLine& line, Duration patience, bool over) const {
  const MembersOfStage& members = book_.of(stage_);
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
