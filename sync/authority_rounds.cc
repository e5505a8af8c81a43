// Rounds: opening, deciding, retrying, the last ones.
#include <algorithm>

#include "sync/authority.h"
#include "sync/round.h"
#include "transport/limits.h"

namespace shoal {
namespace {

constexpr Duration kRetryFirst = 100ms, kRetryMax = 5s;
constexpr std::size_t kLastRoundFailuresMax = 8;
constexpr std::uint32_t kSilentMax =
    2;  // attempts in a row; then the next one goes without that member if enough are left

Duration retry_delay(std::uint32_t failures) {
  Duration delay = kRetryFirst;
  for (std::uint32_t i = 1; i < failures && delay < kRetryMax; ++i) delay *= 2;
  return std::min(delay, kRetryMax);
}

}  // namespace

bool Authority::step_done(StageId stage, StepId step) const {
  return stage.value < stages_.size() && stages_[stage.value].step_done >= step;
}

void Authority::on_step(const Step& step) {
  if (failed_ || !started_) return;
  const bool done =
      std::all_of(stages_.begin(), stages_.end(), [&](const StageState& s) { return s.step_done >= step.step; });
  if (done || step.step.value == 0) return;
  steps_.emplace(step.step, step);
  for (StageState& stage : stages_) maybe_open(stage);
}

void Authority::forget_done_steps() {
  std::erase_if(steps_, [&](const auto& entry) {
    return std::all_of(stages_.begin(), stages_.end(), [&](const StageState& s) { return s.step_done >= entry.first; });
  });
}

const Step* Authority::next_step(const StageState& stage) const {
  const auto at = steps_.upper_bound(stage.step_done);
  return at == steps_.end() ? nullptr : &at->second;
}

bool Authority::diloco_active(const StageState& stage) const {
  return options_.rule == RuleId::kDiloco && stage.step_done.value >= options_.warm_steps;
}

// Somebody asked to leave and could take part in a round at once.
bool Authority::leaver_waits(const StageState& stage) const {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& entry) {
    const MemberState& member = entry.second;
    return member.stage == stage.stage && member.leave_asked && member.ready && member.version == stage.version;
  });
}

bool Authority::diloco_due(const StageState& stage) const {
  if (!diloco_active(stage)) return false;
  if (leaver_waits(stage) || stage.last_wanted) return true;
  std::uint64_t settled = 0, wanted = 0;
  for (const auto& [session, member] : members_) {
    if (member.stage != stage.stage || !member.ready || member.version != stage.version) continue;
    settled += member.settled;
    wanted += options_.round_targets;
  }
  if (settled == 0) return false;
  if (wanted > 0 && settled >= wanted) return true;
  return options_.round_cap > Duration(0) && loop_.now() - stage.last_commit_at >= options_.round_cap;
}

// Who takes part: more than half of those who are ready, or nobody yet. Steps need everybody who may hold entries of
// them, also a member that still writes the commit of the step before; deltas need the same anchor. In the order of the
// sessions, which all members share.
std::vector<Session> Authority::participants(const StageState& stage, bool step_round) const {
  std::vector<Session> ready, able, reliable;
  for (const auto& [session, member] : members_) {
    if (member.stage != stage.stage || !member.ready) continue;
    ready.push_back(session);
    if (!step_round && member.version != stage.version) continue;
    able.push_back(session);
    if (member.silent_count < kSilentMax) reliable.push_back(session);
  }
  if (2 * reliable.size() > ready.size()) return reliable;
  if (2 * able.size() > ready.size()) return able;
  return {};
}

void Authority::maybe_open(StageState& stage) {
  if (!started_ || failed_ || ended_ || gave_up_ || stage.round) return;
  if (finishing_ && !finished_) return;  // what no round secured by now is about to be named lost
  const TimePoint now = loop_.now();
  if (now < stage.retry_at) return;
  const bool someone_fetches = std::any_of(members_.begin(), members_.end(), [&](const auto& entry) {
    return entry.second.stage == stage.stage && entry.second.fetching;
  });
  if (someone_fetches && now < stage.hold_until) return;
  const Step* step = next_step(stage);
  if (step == nullptr && !diloco_due(stage)) return;
  std::vector<Session> members = participants(stage, step != nullptr);
  if (!members.empty()) open_round(stage, step, std::move(members));
}

void Authority::open_round(StageState& stage, const Step* step, std::vector<Session> members) {
  RoundOpen open;
  open.stage = stage.stage;
  open.round = RoundId(++stage.round_used.value);
  open.rule = static_cast<std::uint8_t>(step != nullptr ? RuleId::kAllreduce : options_.rule);
  if (step != nullptr) open.step = step->step;
  open.base = stage.version;
  open.members = std::move(members);
  open.budget_ms =
      static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(options_.round_budget).count());
  open.last = step == nullptr && stage.last_wanted;
  open.run_targets = step != nullptr ? step->run_targets : status_.run_targets;
  stage.round.emplace();
  stage.round->open = open;
  decide(LogOpen{open}, [this, &stage, id = open.round] {
    if (stage.round && stage.round->open.round == id) send_open(stage);
  });
}

// `stages_` never changes its size after construction, so references to its elements stay good.
void Authority::send_open(StageState& stage) {
  OpenRound& round = *stage.round;
  round.sent = true;
  round.sent_at = loop_.now();
  // A little more than the members have, so that their word on who was silent comes first.
  round.budget = loop_.after(options_.round_budget + options_.round_budget / 10, [this, &stage] {
    stage.round->budget = 0;
    try_decide(stage, true);
    if (stage.round) abandon_round(stage, "no agreement within the budget");
  });
  port_.write({.event = EventKind::kRoundOpen,
               .stage = stage.stage,
               .round = round.open.round,
               .version = round.open.base,
               .step = round.open.step,
               .members = round.open.members.size()});
  const auto step = steps_.find(round.open.step);
  for (const Session& member : round.open.members) {
    if (step != steps_.end()) send_to_session(member, step->second);
    send_to_session(member, round.open);
  }
}

void Authority::on_report(const Remote& from, const RoundReport& report) {
  StageState* stage = stage_of(report.stage);
  if (stage == nullptr || !members_.count(from.session)) return;
  if (!stage->round || stage->round->open.round != report.round) {
    if (stage->last_commit_sent && stage->last_commit_sent->round == report.round)
      port_.send(from.peer, *stage->last_commit_sent);
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
      round.contributed.emplace(from.session, report);
      break;
    case ReportKind::kAgreed:
      round.agreed.emplace(from.session, report);
      break;
    case ReportKind::kFailed:
      if (!round.failed.insert(from.session).second) break;
      port_.write({.event = EventKind::kRoundFailed,
                   .stage = stage->stage,
                   .about = from.session,
                   .round = report.round,
                   .silent = report.silent,
                   .cause = report.reason});
      // Once an attempt, however many members say it.
      if (const auto silent = report.silent ? members_.find(*report.silent) : members_.end(); silent != members_.end())
        silent->second.silent_count = std::max(silent->second.silent_count, std::min(stage->failures + 1, kSilentMax));
  }
  try_decide(*stage, false);
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
  OpenRound round = std::move(*stage.round);
  stage.round.reset();
  stop_round_timers(round);
  RoundCommit commit;
  commit.stage = stage.stage;
  commit.round = round.open.round;
  commit.version = Version(round.open.base.value + 1);
  commit.digest = digest;
  commit.step = round.open.step;
  for (const auto& [session, report] : round.contributed) {
    commit.tag += report.tag;
    commit.secured.push_back({session, report.entries});
  }
  stage.version = commit.version;
  stage.digest = digest;
  stage.secured = true;
  stage.round_committed = commit.round;
  if (commit.step.value != 0) stage.step_done = commit.step;
  stage.last_commit = commit;
  stage.last_commit_at = loop_.now();
  stage.last_abandon.reset();
  stage.failures = 0;
  stage.last_round_failures = 0;
  stage.last_wanted = stage.last_wanted && !round.open.last;
  ++epoch_.value;
  list_dirty_ = true;
  for (auto& [session, member] : members_) {
    if (member.stage != stage.stage) continue;
    member.settled = 0;
    member.silent_count = 0;
    member.commit_sent_at = loop_.now();
    const auto agreed = round.agreed.find(session);
    if (agreed != round.agreed.end() && agreed->second.digest == digest) member.version = commit.version;
  }
  note_named(commit);
  forget_done_steps();
  decide(LogCommit{commit}, [this, &stage, commit, members = round.open.members] {
    stage.last_commit_sent = commit;
    port_.write(event_of(commit));
    for (const auto& [session, member] : members_)
      if (member.stage == stage.stage) send_commit(member, commit);
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
  port_.send(member.member.peer, commit);
}

void Authority::abandon_round(StageState& stage, const std::string& reason) {
  OpenRound round = std::move(*stage.round);
  stage.round.reset();
  stop_round_timers(round);
  ++stage.failures;
  stage.retry_at = loop_.now() + retry_delay(stage.failures);
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
    stage.failures = 0;
    stage.retry_at = loop_.now();
  }
}

// Those who asked to leave may go when a round that they were part of is committed.
void Authority::release_leavers(StageState& stage, const std::vector<Session>& members) {
  std::vector<std::pair<Session, PeerId>> free;
  for (const auto& [session, member] : members_) {
    if (member.stage != stage.stage || !member.leave_asked) continue;
    if (std::find(members.begin(), members.end(), session) != members.end())
      free.emplace_back(session, member.member.peer);
  }
  const bool stays = !free.empty() && std::any_of(members_.begin(), members_.end(), [&](const auto& entry) {
    const MemberState& member = entry.second;
    return member.stage == stage.stage && member.ready && member.version == stage.version &&
           std::none_of(free.begin(), free.end(), [&](const auto& one) { return one.first == entry.first; });
  });
  if (!stays && !free.empty()) {  // the anchor would go with them: one asks again
    members_.at(free.back().first).leave_asked = false;
    free.pop_back();
  }
  for (const auto& [session, peer] : free)
    end_session(session, std::string(kLeft), false, [this, peer = peer] { port_.send(peer, Goodbye{}); });
}

bool Authority::stage_finished(const StageState& stage) const {
  if (gave_up_) return !stage.round;
  const bool anyone = std::any_of(members_.begin(), members_.end(), [&](const auto& entry) {
    return entry.second.stage == stage.stage && entry.second.ready;
  });
  if (!anyone) return !stage.round && next_step(stage) == nullptr;  // a step waits for whoever comes
  return !stage.round && !stage.last_wanted && next_step(stage) == nullptr;
}

void Authority::finish(std::function<void()> done) {
  finishing_ = true;
  finished_ = std::move(done);
  for (StageState& stage : stages_) {
    stage.last_wanted = options_.rule == RuleId::kDiloco;
    maybe_open(stage);
  }
  check_finished();
}

void Authority::give_up(std::function<void()> done) {
  finishing_ = gave_up_ = true;
  finished_ = std::move(done);
  for (StageState& stage : stages_)
    if (stage.round) abandon_round(stage, "the run ends without waiting for it");
  check_finished();
}

void Authority::check_finished() {
  if (!finished_ || undurable_ > 0) return;
  for (StageState& stage : stages_) {
    // With steps still to come that nobody sends, the warm-up never ends: there is nothing beyond the last step to
    // secure.
    if (!stage.round && next_step(stage) == nullptr && !diloco_active(stage)) stage.last_wanted = false;
    if (!stage_finished(stage)) return;
  }
  std::exchange(finished_, nullptr)();
}

}  // namespace shoal
