// A stage that lost all who held its newest version: back to an earlier one that somebody still has.
#include <algorithm>

#include "authority/authority.h"
#include "common/log.h"
#include "events/session_end.h"
#include "transport/limits.h"

namespace shoal {

namespace {
constexpr std::size_t kHadMax = 4 * limits::kReplicasMax;  // peers of a stage whose version is kept in mind
}  // namespace

void Authority::note_commit(StageState& stage, const RoundCommit& commit, const RecentCommits::TakenBack& taken) {
  stage.version = commit.version;
  stage.digest = commit.digest;
  stage.secured = true;
  stage.round_committed = commit.round;
  if (commit.step.value != 0) stage.step_done = commit.step;
  stage.last_commit = commit;
  stage.last_abandon.reset();
  stage.recent.push(commit);
  StageState::Told told{commit, loop_.now()};
  if (commit.back_to) {
    tally_.take_back(stage.stage, taken);
    told.commit.secured = taken.secured;
    told.commit.tag = taken.tag;
  } else {
    tally_.add(commit);
  }
  const Version settled = port_.settled(stage.stage);
  while (!stage.told.empty() && stage.told.front().at + kToldAgain < loop_.now() &&
         stage.told.front().commit.version <= settled)
    stage.told.pop_front();
  stage.told.push_back(std::move(told));
}

void Authority::note_over(const Session& session, StageId stage, const std::string& reason) {
  tally_.faults += is_fault(reason) ? 1 : 0;
  over_lately_.push_back({stage, session, reason});
  if (over_lately_.size() > kOverAgain) over_lately_.pop_front();
}

void Authority::note_had(StageState& stage, const MemberState& member) {
  if (!member.ready) return;
  const std::uint64_t peer_tag = member.member.session.peer_tag;
  if (stage.had.size() < kHadMax || stage.had.contains(peer_tag)) stage.had.insert_or_assign(peer_tag, member.version);
}

JoinWish Authority::wish_of(const JoinRequest& request) const {
  JoinWish wish{request.wish, request.held_stage, request.held_version, request.held_digest};
  if (request.held_stage && request.held_stage->value < stages_.size())
    wish.held_known = stages_[request.held_stage->value].recent.known({request.held_version, request.held_digest});
  return wish;
}

std::optional<Version> Authority::restorable(const StageState& stage) const {
  std::optional<Version> best;
  for (const auto& [session, member] : stage.members) {
    if (member->ready || !member->held || !stage.recent.known(*member->held)) continue;
    if (may_have(stage, session, member->held->version)) best = std::max(best, std::optional(member->held->version));
  }
  return best;
}

bool Authority::may_have(const StageState& stage, const Session& session, Version version) {
  const auto had = stage.had.find(session.peer_tag);
  return (had != stage.had.end() && had->second >= version) || stage.recent.took_part(session.peer_tag, version);
}

bool Authority::one_may_come(const StageState& stage) const {
  // A member that is behind has an anchor that it brings when its session ends, since nobody has the newest one for it.
  if (std::ranges::any_of(stage.members, [](const auto& entry) { return entry.second->serves; })) return true;
  const auto is_here = [&](std::uint64_t peer_tag) {
    return std::ranges::any_of(
        stage.members, [&](const auto& entry) { return entry.first.peer_tag == peer_tag && entry.second->beaten; });
  };
  const bool of_round = std::ranges::any_of(stage.last_commit->secured,
                                            [&](const Secured& secured) { return !is_here(secured.session.peer_tag); });
  return of_round || std::ranges::any_of(stage.had, [&](const auto& entry) {
           return entry.second == stage.version && !is_here(entry.first);
         });
}

void Authority::maybe_restore(StageState& stage, TimePoint now) {
  const bool held = held_without(stage, Session{}) || std::ranges::any_of(stage.members, [&](const auto& entry) {
                      const MemberState& member = *entry.second;
                      return member.ahead || (member.held && member.held->digest == stage.digest &&
                                              may_have(stage, entry.first, member.held->version));
                    });
  if (held || stage.round || ended_ || gave_up_) return stage.missing_since.reset();
  if (!stage.missing_since) stage.missing_since = now;
  const auto version = restorable(stage);
  if (version && (now - *stage.missing_since >= options_.restore_after || !one_may_come(stage)))
    restore_to(stage, *version);
}

void Authority::restore_to(StageState& stage, Version version) {
  RecentCommits::TakenBack taken = stage.recent.behind(version);
  RoundCommit commit;
  commit.stage = stage.stage;
  commit.round = RoundId(++stage.round_used.value);
  commit.version = Version(stage.version.value + 1);
  commit.digest = *stage.recent.digest_of(version);
  commit.back_to = version;
  log_warning("stage ", stage.stage, ": nobody holds version ", stage.version, " any more: back to version ", version,
              ", called ", commit.version, " from now on. ", taken.entries(),
              " contributions that later rounds secured are taken back");
  note_commit(stage, commit, taken);
  stage.last_commit_at = loop_.now();
  stage.missing_since.reset();
  stage.retry_pause.reset();
  ++epoch_.value;
  list_dirty_ = true;
  for (const auto& [session, member] : stage.members) {
    member->settled = 0;
    member->commit_sent_at = loop_.now();
  }
  decide(LogCommit{commit, port_.paths_logged()}, [this, &stage, commit, taken = std::move(taken)] {
    stage.last_commit_sent = commit;
    say_restored(commit, taken);
    for (const auto& [session, member] : stage.members) send_commit(*member, commit);
  });
}

void Authority::say_restored(const RoundCommit& commit, const RecentCommits::TakenBack& taken) {
  port_.write(restored_event(commit.stage, commit.round, commit.version, *commit.back_to, commit.digest, taken.tag,
                             taken.secured, "nobody holds the version before"));
  port_.on_restored(commit, taken);
}

}  // namespace shoal
