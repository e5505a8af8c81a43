#include "authority/stage_line.h"

#include <algorithm>

#include "events/delay.h"

namespace shoal {
namespace {

// As it is told again: of one that goes back, what that takes.
RoundCommit told_again(RoundCommit commit, const RecentCommits::TakenBack& taken) {
  if (!commit.back_to) return commit;
  commit.secured = taken.secured;
  commit.tag = taken.tag;
  return commit;
}

std::optional<double> lower_median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Whether a checkpoint that a member says it has is newer than another one; one of a version that no round made is
// none.
bool is_newer(const std::optional<DiskState>& one, const std::optional<DiskState>& other, Version newest) {
  if (!one || one->version > newest) return false;
  return !other || one->version > other->version || (one->version == other->version && one->age_s < other->age_s);
}

}  // namespace

void StageLine::land(const RoundCommit& commit) {
  for (LineFragment& fragment : fragments) {
    if (!commit.back_to && &fragment != &fragments[fragment_opened]) continue;
    fragment.version = commit.version;
    fragment.digest = commit.digest;
    fragment.round = commit.round;
  }
  secured = true;
}

void StageLine::push(const RoundCommit& commit, const RecentCommits::TakenBack& taken, Version settled, TimePoint now) {
  land(commit);
  if (commit.step.value != 0) step_done = commit.step;
  last_commit = commit;
  last_abandon.reset();
  recent.push(commit);
  while (!told.empty() && told.front().at + kToldAgain < now && told.front().commit.version <= settled)
    told.pop_front();
  told.push_back({told_again(commit, taken), now});
}

void StageLine::note_had(const MemberState& member) {
  if (!member.ready()) return;
  const std::uint64_t peer_tag = member.member.session.peer_tag;
  if (had.size() < kHadMax || had.contains(peer_tag)) had.insert_or_assign(peer_tag, member.version);
}

bool StageLine::held(const MembersOfStage& members, const std::optional<Session>& but) const {
  return std::ranges::any_of(members,
                             [&](const auto& entry) { return entry.first != but && has_newest(*entry.second); });
}

bool StageLine::missing(const MembersOfStage& members) const {
  return secured && !held(members) && std::ranges::none_of(members, [&](const auto& entry) {
           const MemberState& member = *entry.second;
           return member.ahead() || std::ranges::any_of(member.said.held, [&](const HeldState& held) {
                    return held.digest == digest() && may_have(entry.first, held.version);
                  });
         });
}

bool StageLine::may_have(const Session& session, Version of) const {
  const auto at = had.find(session.peer_tag);
  return (at != had.end() && at->second >= of) || recent.took_part(session.peer_tag, of);
}

std::optional<Version> StageLine::restorable(const MembersOfStage& members) const {
  std::optional<Version> best;
  for (const auto& [session, member] : members) {
    if (member->ready()) continue;
    for (const HeldState& held : member->said.held)
      if (recent.known(held) && may_have(session, held.version)) best = std::max(best, std::optional(held.version));
  }
  return best;
}

bool StageLine::one_may_come(const MembersOfStage& members) const {
  // A member that is behind has an anchor that it brings when its session ends, since nobody has the newest one for it.
  if (std::ranges::any_of(members, [](const auto& entry) { return entry.second->serves(); })) return true;
  const auto is_here = [&](std::uint64_t peer_tag) {
    return std::ranges::any_of(
        members, [&](const auto& entry) { return entry.first.peer_tag == peer_tag && entry.second->beats.came; });
  };
  const bool of_round =
      std::ranges::any_of(last_commit->secured, [&](const Secured& one) { return !is_here(one.session.peer_tag); });
  return of_round || std::ranges::any_of(
                         had, [&](const auto& entry) { return entry.second == version() && !is_here(entry.first); });
}

StageStatus StageLine::status(const MembersOfStage& members, std::optional<Duration> missing_for,
                              Duration restore_after) const {
  StageStatus one;
  one.stage = stage;
  one.secured = secured;
  one.version = version();
  std::vector<double> delays;
  for (const auto& [session, member] : members) {
    ++one.members;
    one.serving += member->member.serving ? 1 : 0;
    if (member->ahead()) one.ahead.push_back(session);
    if (member->member.serving && member->said.stranded) one.stranded.push_back(session);
    if (member->member.serving)
      for (const RefusedMicrobatch& refused : member->said.refused) one.refused.emplace_back(session, refused);
    one.holders += has_newest(*member) ? 1 : 0;
    if (is_newer(member->said.on_disk, one.on_disk, version())) one.on_disk = member->said.on_disk;
    if (!member->member.serving || member->said.inner_steps < kDelayWindows) continue;
    delays.push_back(std::min<double>(member->said.delay_milli / 1000.0, DelayHistogram::kBins - 1));
  }
  if (missing_for) {
    one.back_to = restorable(members);
    one.back_in = std::max(Duration(0), restore_after - *missing_for);
  }
  one.delay = lower_median(std::move(delays));
  if (last_commit)
    for (const Secured& secured : last_commit->secured) one.last_members.push_back(secured.session);
  return one;
}

StageMembers StageLine::head() const {
  StageMembers head;
  head.stage = stage;
  head.epoch = epoch;
  head.version = version();
  head.digest = digest();
  head.secured = secured;
  head.round = round_committed();
  head.step = step_done;
  return head;
}

Result<RecentCommits::TakenBack> StageLine::replay(const LogCommit& record, Version settled, TimePoint now) {
  const RoundCommit& commit = record.commit;
  if (commit.version <= version() || (commit.back_to && recent.digest_of(*commit.back_to) != commit.digest))
    return log_contradicts("commits a version that does not follow the one before");
  auto taken = commit.back_to ? recent.behind(*commit.back_to) : RecentCommits::TakenBack();
  push(commit, taken, settled, now);
  round_used = std::max(round_used, commit.round);
  last_commit_sent = commit;
  return taken;
}

Status StageLine::replay(const LogStage& record) {
  epoch = record.epoch;
  round_used = record.round_used;
  step_done = record.step_done;
  recent = record.recent;
  if (!record.last_commit) return {};
  if (recent.digest_of(record.last_commit->version) != record.last_commit->digest)
    return log_contradicts("ends a stage with a version that it does not know");
  land(*record.last_commit);
  last_commit = last_commit_sent = record.last_commit;
  return {};
}

Status StageLine::replay(const LogOpen& record) {
  if (record.open.fragment >= fragments.size())
    return log_contradicts("opens a round of a fragment that its stage does not have");
  fragment_opened = record.open.fragment;
  round_used = record.open.round;
  last_abandon = RoundAbandon{stage, round_used, "the authority was restarted"};
  return {};
}

void StageLine::replay(const LogAgain& record, TimePoint now) {
  if (told.empty() || told.back().commit.version < record.commit.version) told.push_back({record.commit, now});
}

void StageLine::compact(const MembersOfStage& members, std::vector<LogRecord>& records) const {
  records.push_back(LogStage{stage, epoch, round_used, step_done, recent, last_commit});
  // One that is open, or came to nothing: whoever still asks hears that it is over.
  if (round_used > round_committed()) {
    LogOpen open;
    open.open.stage = stage;
    open.open.round = round_used;
    open.open.fragment = fragment_opened;
    records.push_back(std::move(open));
  }
  for (const auto& [session, member] : members) records.push_back(LogMember{stage, member->member});
  for (const auto& [session, member] : members)
    if (member->named) records.push_back(LogNamed{*member->named});
  for (const Told& one : told) records.push_back(LogAgain{one.commit});
}

}  // namespace shoal
