// Rounds: what the members report, and what becomes of the round.
#include <algorithm>

#include "authority/authority.h"
#include "common/log.h"
#include "sync/round.h"
#include "sync/round_budget.h"

namespace shoal {
namespace {

constexpr std::size_t kLastRoundFailuresMax = 8;

// With the entries of that member alone: the names of all, to all, would grow with the square of a stage's members.
RoundCommit as_told_to(const Session& session, const RoundCommit& commit) {
  RoundCommit told{commit.stage, commit.round, commit.version, commit.digest, commit.tag,
                   commit.step,  {},           commit.back_to};
  for (const Secured& secured : commit.secured)
    if (secured.session == session) told.secured.push_back(secured);
  return told;
}

}  // namespace

void Authority::on_report(const Remote& from, const RoundReport& report) {
  StageState* stage = stage_of(report.stage);
  if (stage == nullptr || !members_.count(from.session)) return;
  if (!stage->round || stage->round->open.round != report.round) {
    if (stage->last_commit_sent && stage->last_commit_sent->round == report.round)
      send_commit(members_.at(from.session), *stage->last_commit_sent);
    else if (report.round > stage->round_committed && report.round <= stage->round_used &&
             report.round != stage->last_commit.value_or(RoundCommit{}).round)
      port_.send(from.peer, RoundAbandon{report.stage, report.round, "this round is over"});
    return;
  }
  OpenRound& round = *stage->round;
  const auto& members = round.open.members;
  if (!round.sent || std::find(members.begin(), members.end(), from.session) == members.end()) return;
  switch (kind_of(report)) {
    case ReportKind::kContributed:
      if (const auto unfit = port_.unfit_for_round(report.stage, from.session, report.entries))
        return end_session(from.session, "it brought to a round " + *unfit, true);
      if (options_.entry_targets > 0 && report.weight != report.entries.size() * options_.entry_targets)
        return end_for_misconduct(from.session, "it brought to a round a weight of " + std::to_string(report.weight) +
                                                    " for " + std::to_string(report.entries.size()) + " entries of " +
                                                    std::to_string(options_.entry_targets) + " targets");
      members_.at(from.session).refusals = 0;
      round.contributed.emplace(from.session, report);
      break;
    case ReportKind::kAgreed:
      round.agreed.emplace(from.session, report);
      break;
    case ReportKind::kWaiting:
      round.waiting[from.session] = {*report.silent, loop_.now()};
      return check_stall(*stage);
    case ReportKind::kFailed:
      if (!round.failed.insert(from.session).second) break;
      port_.write({.event = EventKind::kRoundFailed,
                   .stage = stage->stage,
                   .about = from.session,
                   .round = report.round,
                   .silent = report.silent,
                   .cause = report.reason});
      if (!round.contributed.contains(from.session)) return on_refused_round(*stage, members_.at(from.session), report);
      if (report.malformed) return blame_malformed(*stage, from.session, *report.malformed, report.reason);
      if (report.silent) blame_silent(*stage, from.session, *report.silent);
  }
  try_decide(*stage, false);
}

// The first time: in which everybody must have contributed. Then bytes may move until the round's end; that they stand
// still is told by the members.
void Authority::on_budget(StageState& stage) {
  OpenRound& round = *stage.round;
  round.budget = 0;
  if (round.contributed.size() == round.open.members.size() && loop_.now() < round.ends_at) {
    round.budget = loop_.at(round.ends_at, [this, &stage] { on_budget(stage); });
    return;
  }
  // The others may have more time for the whole, and would not have named them yet.
  for (const Session& member : round.open.members)
    if (!round.contributed.contains(member)) round.silent.insert(member);
  const RoundId id = round.open.round;
  try_decide(stage, true);  // a commit may open the next one
  if (stage.round && stage.round->open.round == id) abandon_round(stage, "no agreement within the budget");
}

void Authority::note_rate(StageState& stage, const OpenRound& round) {
  const std::size_t members = round.open.members.size();
  const double took = seconds_of(loop_.now() - round.sent_at);
  if (stage.stage.value >= options_.payload_bytes.size() || members < 2 || took <= 0) return;
  const double rate = static_cast<double>(round_bytes(options_.payload_bytes[stage.stage.value], members)) / took;
  stage.slowest_rate = stage.slowest_rate > 0 ? std::min(stage.slowest_rate, rate) : rate;
}

std::optional<std::pair<Digest, std::size_t>> Authority::best_vote(const OpenRound& round) const {
  std::map<Digest, std::size_t> votes;
  for (const auto& [session, report] : round.agreed) ++votes[report.digest];
  const auto best =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best == votes.end()) return std::nullopt;
  return *best;
}

bool Authority::sums_add_up(const OpenRound& round, const Digest& digest) const {
  std::uint64_t weight = 0;
  CountTag tag = 0;
  for (const auto& [session, report] : round.contributed) {
    weight += report.weight;
    tag += report.tag;
  }
  return std::all_of(round.agreed.begin(), round.agreed.end(), [&](const auto& entry) {
    return entry.second.digest != digest || (entry.second.weight == weight && entry.second.tag == tag);
  });
}

void Authority::try_decide(StageState& stage, bool grace_over) {
  OpenRound& round = *stage.round;
  const std::size_t members = round.open.members.size();
  if (round.contributed.size() < members) {
    // The sum would hold a part whose entries we cannot name: who failed without a contribution ends the attempt.
    for (const Session& failed : round.failed)
      if (!round.contributed.count(failed)) return abandon_round(stage, "a member could not contribute");
    return;
  }
  const auto best = best_vote(round);
  const std::size_t votes = best ? best->second : 0;
  std::size_t decided = round.agreed.size();
  for (const Session& failed : round.failed) decided += round.agreed.count(failed) ? 0 : 1;
  const std::size_t open = members - decided;
  if (2 * votes > members) {
    if (!sums_add_up(round, best->first))
      return abandon_round(stage, "the sum's weight or tag is not that of the contributions");
    if (open == 0 || grace_over) return commit_round(stage, best->first);
    if (round.grace == 0)
      round.grace = loop_.after(options_.round_grace, [this, &stage] {
        stage.round->grace = 0;
        try_decide(stage, true);
      });
    return;
  }
  if (2 * (votes + open) <= members) abandon_round(stage, "no digest has more than half of the members");
}

void Authority::stop_round_timers(OpenRound& round) {
  for (TimerId* timer : {&round.budget, &round.grace}) {
    if (*timer != 0) loop_.cancel(*timer);
    *timer = 0;
  }
}

void Authority::commit_round(StageState& stage, const Digest& digest) {
  for (const auto& [session, report] : stage.round->contributed)
    if (const auto unfit = port_.unfit_for_round(stage.stage, session, report.entries)) {
      const Session liar = session;  // it answered since that it holds no such entry any more
      abandon_round(stage, "it has what no round may contain");
      return end_session(liar, "it brought to a round " + *unfit, true);
    }
  RoundCommit commit;
  commit.stage = stage.stage;
  commit.round = stage.round->open.round;
  commit.version = Version(stage.round->open.base.value + 1);
  commit.digest = digest;
  commit.step = stage.round->open.step;
  for (const auto& [session, report] : stage.round->contributed) {
    commit.tag += report.tag;
    commit.secured.push_back({session, report.entries});
  }
  // Honest members stay far below: ids are given out in order, and not more of them than the run's window.
  if (const auto packed = pack_log_record(LogCommit{commit, 0}); !packed.ok())
    return abandon_round(stage, "its commit cannot be logged: " + packed.error().message);
  OpenRound round = std::move(*stage.round);
  stage.round.reset();
  stop_round_timers(round);
  note_commit(stage, commit);
  stage.last_commit_at = loop_.now();
  stage.retry_pause.reset();
  stage.last_round_failures = 0;
  ++epoch_.value;
  list_dirty_ = true;
  for (const auto& [session, at] : stage.members) {
    MemberState& member = *at;
    member.settled = 0;
    member.silent_count = 0;
    member.commit_sent_at = loop_.now();
    if (round.open.last && round.contributed.contains(session)) member.flushed = true;
    const auto agreed = round.agreed.find(session);
    if (agreed != round.agreed.end() && agreed->second.digest == digest) member.version = commit.version;
  }
  if (round.open.last) {
    stage.last_made = true;
    stage.last_until = loop_.now() + fetch_patience(stage);
  }
  note_rate(stage, round);
  forget_proven_pairs(stage, round, digest);
  note_named(commit);
  forget_done_steps();
  decide(LogCommit{commit, port_.paths_logged()}, [this, &stage, commit, members = round.open.members] {
    stage.last_commit_sent = commit;
    port_.write(event_of(commit));
    for (const auto& [session, member] : stage.members) send_commit(*member, commit);
    port_.on_round_commit(commit);
    release_leavers(stage, members);
    check_finished();
  });
  maybe_open(stage);
}

void Authority::note_named(const RoundCommit& commit) {
  for (const Secured& secured : commit.secured) {
    const auto at = members_.find(secured.session);
    if (at == members_.end()) continue;
    at->second.named = commit;
    at->second.named->secured = {secured};
  }
}

void Authority::send_commit(const MemberState& member, const RoundCommit& commit) {
  // A newer one than `commit` is not durable yet.
  if (member.named && member.named->round < commit.round) port_.send(member.member.peer, *member.named);
  port_.send(member.member.peer, as_told_to(member.member.session, commit));
}

void Authority::abandon_round(StageState& stage, const std::string& reason) {
  OpenRound round = std::move(*stage.round);
  stage.round.reset();
  stop_round_timers(round);
  settle_blames(stage, round);
  stage.retry_at = loop_.now() + stage.retry_pause.next();
  const RoundAbandon abandon{stage.stage, round.open.round, reason};
  stage.last_abandon = abandon;
  port_.write({.event = EventKind::kRoundAbandon, .stage = stage.stage, .round = round.open.round, .cause = reason});
  if (round.sent)
    for (const Session& member : round.open.members) send_to_session(member, abandon);
  port_.on_round_abandoned(abandon);
  if (round.open.last && ++stage.last_round_failures >= kLastRoundFailuresMax) stage.last_wanted = false;
  loop_.at(stage.retry_at, lifetime_.guard([this, &stage] {
    maybe_open(stage);
    check_finished();
  }));
}

// Called before the session is over: afterwards no commit may name it.
void Authority::member_leaves_round(StageState& stage, const Session& session) {
  if (!stage.round) return;
  const auto& members = stage.round->open.members;
  if (std::find(members.begin(), members.end(), session) == members.end()) return;
  if (stage.round->sent) try_decide(stage, true);
  if (stage.round) {
    abandon_round(stage, "a member's session is over");
    stage.retry_pause.reset();
    stage.retry_at = loop_.now();
  }
}

}  // namespace shoal
