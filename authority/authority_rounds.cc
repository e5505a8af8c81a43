// Rounds: when one opens, with whom, and the last ones.
#include <algorithm>

#include "authority/authority.h"
#include "common/log.h"
#include "sync/round.h"
#include "sync/round_budget.h"
#include "transport/limits.h"

namespace shoal {

bool Authority::step_done(StageId stage, StepId step) const {
  return stage.value < stages_.size() && stages_[stage.value].step_done >= step;
}

Duration Authority::budget_of(const StageState& stage, std::size_t members) const {
  if (options_.round_budget > Duration(0)) return options_.round_budget;
  return round_budget(payload_of(stage), members, stage.slowest_rate);
}

Duration Authority::fetch_patience(const StageState& stage) const {
  return budget_of(stage, 2) + job_allowance(stage) + options_.membership;
}

std::uint64_t Authority::payload_of(const StageState& stage) const {
  return stage.stage.value < options_.payload_bytes.size() ? options_.payload_bytes[stage.stage.value] : 0;
}

bool Authority::enough_for_parts(StageState& stage, std::size_t members) {
  const std::uint64_t payload = payload_of(stage);
  const bool fit = parts_fit(payload, members);
  if (!fit && !stage.too_few_said)
    log_warning("stage ", stage.stage, ": a round among ", members, " replicas would send ",
                part_bytes(payload, members) >> 20, " MiB at a time, and a transfer has at most ",
                limits::kTransferBytesMax >> 20, " MiB: the stage makes no round before it has ",
                members_needed(payload), " replicas. HINT: shoal join TICKET --stage ", stage.stage);
  stage.too_few_said = !fit;
  if (!fit) stage.last_wanted = false;
  return fit;
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
  return !traits_of(options_.rule).every_step && stage.step_done.value >= options_.warm_steps;
}

// Somebody asked to leave and could take part in a round at once.
bool Authority::leaver_waits(const StageState& stage) const {
  return std::any_of(stage.members.begin(), stage.members.end(), [&](const auto& entry) {
    ++looked_at_;
    const MemberState& member = *entry.second;
    return member.leave_asked && member.ready && !rests(member) && member.version == stage.version;
  });
}

bool Authority::diloco_due(const StageState& stage) const {
  if (!diloco_active(stage)) return false;
  if (leaver_waits(stage) || last_round_due(stage)) return true;
  std::uint64_t settled = 0, wanted = 0;
  for (const auto& [session, at] : stage.members) {
    ++looked_at_;
    const MemberState& member = *at;
    if (!member.ready || member.version != stage.version || rests(member)) continue;
    settled += member.settled;
    if (!stage.unreachable.doubted(member.member.peer)) wanted += options_.round_targets;
  }
  if (settled == 0) return false;
  if (wanted > 0 && settled >= wanted) return true;
  return options_.round_cap > Duration(0) && loop_.now() - stage.last_commit_at >= options_.round_cap;
}

// Who takes part: more than half of those who are ready and not behind, or nobody yet. Steps need everybody who may
// hold entries of them, also a member that still writes the commit of the step before; deltas need the same anchor, and
// go on without who is away: in a large stage somebody always is, and each would hold the others until its membership
// time is over. In the order of the sessions, which all members share.
std::vector<Session> Authority::participants(const StageState& stage, bool step_round) const {
  std::vector<Session> ready, able, reliable;
  for (const auto& [session, at] : stage.members) {
    ++looked_at_;
    const MemberState& member = *at;
    if (!member.ready || rests(member)) continue;
    if (!step_round && member.behind_since) continue;
    ready.push_back(session);
    if (!step_round && member.version != stage.version) continue;
    able.push_back(session);
    if (member.silent_count < kSilentMax && (step_round || !away(member))) reliable.push_back(session);
  }
  if (2 * reliable.size() > ready.size() && parts_fit(payload_of(stage), reliable.size())) return reliable;
  if (2 * able.size() > ready.size()) return able;
  return {};
}

void Authority::maybe_open(StageState& stage) {
  if (!started_ || failed_ || ended_ || gave_up_ || stage.round) return;
  if (finishing_ && !finished_) return;  // what no round secured by now is about to be named lost
  const TimePoint now = loop_.now();
  if (now < stage.retry_at) return;
  if (now < stage.hold_until) {
    for (const auto& [session, member] : stage.members) {
      ++looked_at_;
      if (member->fetching || member->behind_since) return;
    }
  }
  const Step* step = next_step(stage);
  if (step == nullptr && !diloco_due(stage)) return;
  std::vector<Session> members = participants(stage, step != nullptr);
  if (!members.empty() && enough_for_parts(stage, members.size())) open_round(stage, step, std::move(members));
}

void Authority::open_round(StageState& stage, const Step* step, std::vector<Session> members) {
  RoundOpen open;
  open.stage = stage.stage;
  open.round = RoundId(++stage.round_used.value);
  const bool warm = step != nullptr && !traits_of(options_.rule).every_step;
  open.rule = static_cast<std::uint8_t>(warm ? kWarmRule : options_.rule);
  if (step != nullptr) open.step = step->step;
  open.base = stage.version;
  open.members = std::move(members);
  const Duration budget = budget_of(stage, open.members.size()) + job_allowance(stage);
  open.budget_ms = static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(budget).count());
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
  const Duration budget = std::chrono::milliseconds(round.open.budget_ms);
  round.ends_at = loop_.now() + budget + budget / 10;
  const Duration to_contribute =
      options_.round_budget > Duration(0) ? budget : kRoundBudgetFloor + job_allowance(stage);
  round.budget = loop_.after(to_contribute + to_contribute / 10, [this, &stage] { on_budget(stage); });
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

// Those who asked to leave may go when a round that they were part of is committed.
void Authority::release_leavers(StageState& stage, const std::vector<Session>& members) {
  std::vector<std::pair<Session, PeerId>> free;
  for (const auto& [session, member] : stage.members) {
    if (!member->leave_asked || member->leave_after >= stage.round_committed) continue;
    if (std::find(members.begin(), members.end(), session) != members.end())
      free.emplace_back(session, member->member.peer);
  }
  const bool stays = !free.empty() && std::any_of(stage.members.begin(), stage.members.end(), [&](const auto& entry) {
    return entry.second->ready && entry.second->version == stage.version &&
           std::none_of(free.begin(), free.end(), [&](const auto& one) { return one.first == entry.first; });
  });
  if (!stays && !free.empty()) {  // the anchor would go with them: one asks again
    members_.at(free.back().first).leave_asked = false;
    free.pop_back();
  }
  for (const auto& [session, peer] : free)
    end_session(session, std::string(kLeft), false, [this, peer = peer] { port_.send(peer, Goodbye{}); });
}

bool Authority::last_round_due(const StageState& stage) const {
  if (!stage.last_wanted || !stage.last_made) return stage.last_wanted;
  return std::any_of(stage.members.begin(), stage.members.end(), [&](const auto& entry) {
    const MemberState& member = *entry.second;
    return awaited(member) && member.ready && member.version == stage.version && !rests(member);
  });
}

bool Authority::awaited(const MemberState& member) { return member.serves && !member.flushed && !member.ahead; }

// Who was behind catches up, in about the time of a round's bytes; who rests is tried again.
void Authority::tend_last_rounds(StageState& stage) {
  if (!stage.last_wanted || !stage.last_made || stage.round) return;
  bool anyone = false, one_rests = false;
  for (const auto& [session, member] : stage.members) {
    if (!awaited(*member)) continue;
    anyone = true;
    one_rests = one_rests || rests(*member);
  }
  stage.last_wanted = anyone && loop_.now() < stage.last_until;
  if (stage.last_wanted && one_rests) stage.unreachable.try_now(loop_.now());
}

bool Authority::stage_finished(const StageState& stage) const {
  if (gave_up_) return !stage.round;
  const bool anyone =
      std::any_of(stage.members.begin(), stage.members.end(), [](const auto& entry) { return entry.second->ready; });
  if (!anyone) return !stage.round && next_step(stage) == nullptr;  // a step waits for whoever comes
  return !stage.round && !stage.last_wanted && next_step(stage) == nullptr;
}

void Authority::finish(std::function<void()> done) {
  finishing_ = true;
  finished_ = std::move(done);
  for (StageState& stage : stages_) {
    stage.last_wanted = !traits_of(options_.rule).every_step;
    stage.unreachable.try_now(loop_.now());
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
  for (StageState& stage : stages_) tend_last_rounds(stage);
  for (StageState& stage : stages_) {
    // With steps still to come that nobody sends, the warm-up never ends: there is nothing beyond the last step to
    // secure.
    if (!stage.round && next_step(stage) == nullptr && !diloco_active(stage)) stage.last_wanted = false;
    if (!stage_finished(stage)) return;
  }
  std::exchange(finished_, nullptr)();
}

}  // namespace shoal
