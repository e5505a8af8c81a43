// The stage's rounds, seen from the peer: when the ledger lets a step of a round happen, and what it changes.
#include "common/fault.h"
#include "common/log.h"
#include "runtime/stage_peer/stage_peer_parts.h"

namespace shoal {

const OuterRule* StagePeer::rule(std::uint8_t rule_id) const {
  switch (static_cast<RuleId>(rule_id)) {
    case RuleId::kAllreduce:
      return allreduce_.get();
    case RuleId::kDiloco:
      return diloco_.get();
  }
  return nullptr;
}

std::shared_ptr<OuterRule> StagePeer::rule_of(RuleId id) const {
  return id == RuleId::kAllreduce ? allreduce_ : diloco_;
}

RoundContext StagePeer::context_of(const RoundOpen& open) const {
  RoundContext context;
  context.round = open.round;
  context.base = open.base;
  context.fragment = open.fragment;
  const Windows::Window* window = open.step.value > 0 ? ledger_.step_window(open.step) : nullptr;
  if (window != nullptr) {
    context.window = window->slot;
    context.weight = window->targets();
  }
  return context;
}

void StagePeer::contribute(const RoundOpen& open, std::function<void(Result<Contribution>)> done) {
  note_run(open.run_targets, run_loss_);
  waiting_->contribute = {open, std::move(done)};
  if (open.last) ledger_.flush();
  write({.event = EventName::kRoundEnter, .round = open.round, .version = open.base, .step = open.step});
  pump();
}

void StagePeer::prepare(const RoundOpen& open, Payload reduced, std::function<void(Result<Digest>)> done) {
  waiting_->prepare = {open, std::make_shared<Payload>(std::move(reduced)), std::move(done)};
  pump();
}

void StagePeer::commit(const RoundOpen& open, const RoundCommit& commit, std::function<void()> done) {
  SHOAL_FAULT("round.before_commit");
  waiting_->commit = {open, commit, std::move(done)};
  pump();
}

void StagePeer::abandon(const RoundOpen& open) {
  waiting_->contribute.reset();
  waiting_->prepare.reset();
  prepared_.reset();
  waiting_->abandon = open;
  write({.event = EventName::kRoundDrop, .round = open.round});
  pump();
}

void StagePeer::send_to_authority(Message message) {
  if (const auto* report = std::get_if<RoundReport>(&message); report != nullptr && !report->entries.empty()) {
    write({.event = EventName::kRoundReport,
           .round = report->round,
           .tag = report->tag,
           .secured = std::vector<Secured>{{options_.self, report->entries}}});
  }
  if (const auto sent = env_.transport.send(options_.authority, std::move(message)); !sent.ok())
    log_debug("not sent to the authority: ", sent.error().message);
}

void StagePeer::send_to_member(const Session& member, Message message, std::vector<Bytes> frames) {
  if (const auto sent = send_to(member, std::move(message), std::move(frames)); !sent.ok())
    log_debug("round part not sent: ", sent.error().message);
}

bool StagePeer::pump_round() {
  if (waiting_->abandon) return run_abandon();
  if (waiting_->shift) return run_shift();
  if (waiting_->commit) return run_commit();
  if (waiting_->prepare) return run_prepare();
  return waiting_->contribute && run_contribute();
}

bool StagePeer::run_abandon() {
  const RoundOpen open = *waiting_->abandon;
  waiting_->abandon.reset();
  on_device(
      DeviceTask::kRound,
      [executor = env_.executor, r = rule_of(open), context = context_of(open)] { r->abandon(*executor, context); },
      [] {});
  return true;
}

bool StagePeer::run_commit() {
  if (rule(waiting_->commit->open.rule)->every_step() && ledger_.unsettled_at_other() > 0) return false;
  auto commit = std::make_shared<Waiting::Commit>(std::move(*waiting_->commit));
  waiting_->commit.reset();
  struct Outcome {
    WeightStamp stamp = 0;
    bool shift_pending = false;
    CountTag tag = 0;
  };
  auto outcome = std::make_shared<Outcome>();
  const auto r = rule_of(commit->open);
  on_device(
      DeviceTask::kRound,
      [executor = env_.executor, r, context = context_of(commit->open), outcome] {
        r->commit(*executor, context);
        outcome->stamp = executor->stamp();
        outcome->shift_pending = executor->shift_pending();
        outcome->tag = executor->arena().tag(ArenaRole::kAnchor);
      },
      [this, commit, outcome, r] {
        ledger_.wrote(outcome->stamp);
        shift_pending_ = outcome->shift_pending;
        version_ = commit->commit.version;
        prepared_.reset();
        state_rule_ = r->id();
        for (const Secured& secured : commit->commit.secured)
          if (secured.session == options_.self) ledger_.secure(secured.serials);
        if (r->every_step()) {
          adam_step_ = commit->open.step.value;
          ++inner_steps_;
          ledger_.pop_step(commit->open.step);
        }
        write(anchor_event(options_.spec.stage, version_, outcome->tag, commit->commit.digest));
        owner_.on_version(version_);
        commit->done();
      });
  return true;
}

bool StagePeer::run_prepare() {
  const auto r = rule_of(waiting_->prepare->open);
  auto prepare = std::make_shared<Waiting::Prepare>(std::move(*waiting_->prepare));
  waiting_->prepare.reset();
  RoundContext context = context_of(prepare->open);
  context.inner = options_.config->inner_step(
      prepare->open.step.value, std::max<std::uint64_t>(1, prepare->reduced->weight), prepare->open.run_targets);
  auto digest = std::make_shared<Result<Digest>>(Digest{});
  on_device(
      DeviceTask::kRound,
      [executor = env_.executor, r, context, prepare, digest] {
        *digest = r->prepare(*executor, context, *prepare->reduced);
      },
      [this, prepare, digest] {
        if (digest->ok()) prepared_ = prepare->open;
        prepare->done(*digest);
      });
  return true;
}

bool StagePeer::run_contribute() {
  const RoundOpen open = waiting_->contribute->open;
  const auto r = rule_of(open);
  if (r->every_step()) {
    if (!ledger_.step_ready(open.step)) return false;
  } else {
    if (open.last || leaving_) {
      ledger_.flush();
      if (!ledger_.windows_empty()) return false;
    }
    if (shift_pending_) {  // the snapshot must hold what the last round agreed on
      if (ledger_.unsettled_at_other() > 0) return false;
      start(Job{JobKind::kApplyShift, 0, {}, 0, {}, {}});
      return true;
    }
  }
  auto contribute = std::make_shared<Waiting::Contribute>(std::move(*waiting_->contribute));
  waiting_->contribute.reset();
  RoundContext context = context_of(open);
  auto result = std::make_shared<Contribution>();
  if (r->every_step()) {
    if (const Windows::Window* window = ledger_.step_window(contribute->open.step)) {
      for (const auto& [serial, entry] : window->entries) result->entries.push_back(serial);
    }
  } else {
    result->entries = ledger_.stepped();
    context.weight = ledger_.stepped_targets();
  }
  auto payload = std::make_shared<Result<Payload>>(Payload{});
  on_device(
      DeviceTask::kRound,
      [executor = env_.executor, r, context, payload] { *payload = r->contribute(*executor, context); },
      [this, contribute, result, payload] {
        SHOAL_FAULT("round.contributed");
        if (!payload->ok()) return contribute->done(payload->error());
        result->payload = **std::move(payload);
        contribute->done(std::move(*result));
      });
  return true;
}

}  // namespace shoal
