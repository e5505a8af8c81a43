#include "runtime/stage_peer/round_desk.h"

#include "common/fault.h"
#include "common/log.h"

namespace shoal {

namespace {

// Executors of whole numbers take rules that keep them whole, so that the anchor itself proves what was counted.
OuterRules make_rules(const RunConfig& config) {
  const bool exact = config.executor.kind != ExecutorKind::kTorch;
  AllreduceOptions allreduce;
  allreduce.exact = exact;
  DilocoOptions diloco;
  diloco.sum = exact;
  diloco.outer_lr = exact ? 1 : config.sync.outer_lr;
  diloco.outer_momentum = exact ? 0 : config.sync.outer_momentum;
  return {.allreduce = make_allreduce_rule(allreduce), .diloco = make_diloco_rule(diloco)};
}

}  // namespace

RoundDesk::RoundDesk(const StageParts& parts, EntryJobs& jobs)
    : parts_(parts),
      jobs_(jobs),
      rules_(make_rules(*parts.options.config)),
      catch_up_(parts, rules_),
      round_(*this, parts.env.loop, parts.options.self, parts.options.spec.stage) {}

bool RoundDesk::on_message(const Remote& from, const Message& message, TransferId transfer) {
  const bool authority = from.peer == parts_.options.authority;
  if (const auto* m = std::get_if<RoundOpen>(&message)) {
    if (authority) round_.on_open(*m);
  } else if (const auto* m = std::get_if<RoundCommit>(&message)) {
    // Before, the state is still on its way here. It may be an older one than this: the authority says it again.
    if (authority && parts_.arena.serving) round_.on_commit(*m);
  } else if (const auto* m = std::get_if<RoundAbandon>(&message)) {
    if (authority) round_.on_abandon(*m);
  } else if (const auto* m = std::get_if<RoundPart>(&message)) {
    if (transfer == 0)
      round_.on_part(from.session, *m, {});
    else
      parts_on_the_way_[{from.peer, transfer}] = *m;
  } else {
    return false;
  }
  return true;
}

void RoundDesk::on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames) {
  const auto it = parts_on_the_way_.find({from.peer, transfer});
  if (it == parts_on_the_way_.end()) return;
  const RoundPart part = it->second;
  parts_on_the_way_.erase(it);
  if (frames.ok() && frames->size() == 1) round_.on_part(from.session, part, frames->front());
}

void RoundDesk::forget_link(const PeerId& peer) {
  std::erase_if(parts_on_the_way_, [&](const auto& item) { return item.first.peer == peer; });
}

bool RoundDesk::catch_up(Bytes image) {
  if (round_.active() || !catch_up_.take(std::move(image))) return false;
  parts_.device.pump();
  return true;
}

const OuterRule* RoundDesk::rule(std::uint8_t rule_id) const { return rules_.of(static_cast<RuleId>(rule_id)).get(); }

RoundContext RoundDesk::context_of(const RoundOpen& open) const {
  RoundContext context;
  context.round = open.round;
  context.base = open.base;
  context.fragment = open.fragment;
  const Windows::Window* window = open.step.value > 0 ? parts_.windows.step_window(open.step) : nullptr;
  if (window != nullptr) {
    context.window = window->slot;
    context.weight = window->targets();
  }
  return context;
}

void RoundDesk::contribute(const RoundOpen& open, std::function<void(Result<Contribution>)> done) {
  parts_.windows.note_run(open.run_targets);
  step_ = ToContribute{open, std::move(done)};
  if (open.last) parts_.windows.flush();
  parts_.env.events.write(
      {.event = EventKind::kRoundEnter, .round = open.round, .version = open.base, .step = open.step});
  parts_.device.pump();
}

void RoundDesk::prepare(const RoundOpen& open, Payload reduced, std::function<void(Result<Digest>)> done) {
  step_ = ToPrepare{open, std::make_shared<Payload>(std::move(reduced)), std::move(done)};
  parts_.device.pump();
}

void RoundDesk::commit(const RoundOpen& open, const RoundCommit& commit, std::function<void()> done) {
  SHOAL_FAULT("round.before_commit");
  step_ = ToCommit{open, commit, std::move(done)};
  parts_.device.pump();
}

void RoundDesk::abandon(const RoundOpen& open) {
  step_ = std::monostate{};
  parts_.arena.prepared.reset();
  abandoned_ = open;
  parts_.env.events.write({.event = EventKind::kRoundDrop, .round = open.round});
  parts_.device.pump();
}

RoundHost::Carried RoundDesk::carried(const Session& member) const {
  const auto peer = parts_.neighbours.peer_of(member);
  if (!peer) return {};
  const LinkStats stats = parts_.env.transport.stats(*peer);
  return {stats.sent_bytes + stats.received_bytes, stats.bytes_per_second};
}

void RoundDesk::send_to_authority(Message message) {
  if (const auto* report = std::get_if<RoundReport>(&message); report != nullptr && !report->entries.empty()) {
    parts_.env.events.write({.event = EventKind::kRoundReport,
                             .round = report->round,
                             .tag = report->tag,
                             .secured = std::vector<Secured>{{parts_.options.self, report->entries}}});
  }
  if (const auto sent = parts_.env.transport.send(parts_.options.authority, std::move(message)); !sent.ok())
    log_debug("not sent to the authority: ", sent.error().message);
}

void RoundDesk::send_to_member(const Session& member, Message message, std::vector<Bytes> frames) {
  if (const auto sent = parts_.neighbours.send_to(member, std::move(message), std::move(frames)); !sent.ok())
    log_debug("round part not sent: ", sent.error().message);
}

void RoundDesk::fell_behind(const RoundCommit& commit, bool secured, bool differs, const std::string& why) {
  if (parts_.arena.version >= commit.version && !differs) return;
  step_ = std::monostate{};
  catch_up_.missed(commit, secured, differs, why);
}

bool RoundDesk::start_next() {
  if (abandoned_ && rule_of(*abandoned_) == nullptr) abandoned_.reset();  // it never began here
  if (abandoned_) {
    run_abandon();
    return true;
  }
  if (catch_up_.ready()) {
    catch_up_.run([this] { round_.on_version_changed(); });
    return true;
  }
  if (std::holds_alternative<ToCommit>(step_)) return run_commit();
  if (std::holds_alternative<ToPrepare>(step_)) {
    run_prepare();
    return true;
  }
  return std::holds_alternative<ToContribute>(step_) && run_contribute();
}

void RoundDesk::run_abandon() {
  const RoundOpen open = *std::exchange(abandoned_, std::nullopt);
  parts_.device.run(
      WorkKind::kAbandon,
      [r = rule_of(open), context = context_of(open)](StageExecutor& executor) { r->abandon(executor, context); },
      [] {});
}

Version RoundDesk::anchor_for_next_job() const {
  if (committing_) return *committing_;
  const auto* const next = std::get_if<ToCommit>(&step_);
  return next != nullptr && may_commit(*next) ? next->commit.version : parts_.arena.version;
}

bool RoundDesk::may_commit(const ToCommit& commit) const {
  return !rule_of(commit.open)->every_step() || parts_.windows.unsettled_at_other() == 0;
}

bool RoundDesk::run_commit() {
  if (!may_commit(std::get<ToCommit>(step_))) return false;
  auto commit = std::make_shared<ToCommit>(std::get<ToCommit>(std::exchange(step_, std::monostate{})));
  const auto r = rule_of(commit->open);
  committing_ = commit->commit.version;
  struct Outcome {
    WeightStamp stamp = 0;
    bool shift_pending = false;
    CountTag tag = 0;
  };
  auto outcome = std::make_shared<Outcome>();
  parts_.device.run(
      WorkKind::kCommit,
      [r, context = context_of(commit->open), outcome](StageExecutor& executor) {
        r->commit(executor, context);
        outcome->stamp = executor.stamp();
        outcome->shift_pending = executor.shift_pending();
        outcome->tag = executor.arena().tag(ArenaRole::kAnchor);
      },
      [this, commit, outcome, r] {
        ArenaState& arena = parts_.arena;
        committing_.reset();
        EventRecord anchor =
            anchor_event(parts_.options.spec.stage, commit->commit.version, outcome->tag, commit->commit.digest);
        if (r->every_step()) note_step(commit->open.step, anchor);  // while the ledger knows the entries
        parts_.windows.wrote(outcome->stamp);
        arena.shift_pending = outcome->shift_pending;
        arena.version = commit->commit.version;
        arena.prepared.reset();
        arena.rule = r->id();
        for (const Secured& secured : commit->commit.secured)
          if (secured.session == parts_.options.self) parts_.ledger.secure(secured.serials);
        if (r->every_step()) {
          arena.step_done = commit->open.step;
          arena.adam_step = commit->open.step.value;
          parts_.windows.pop_step(commit->open.step);
        }
        parts_.env.events.write(anchor);
        parts_.owner.on_version(arena.version);
        commit->done();
      });
  return true;
}

void RoundDesk::note_step(StepId step, EventRecord& anchor) {
  const Windows::Window* window = parts_.windows.step_window(step);
  const DelayHistogram delays = window == nullptr ? DelayHistogram() : parts_.windows.delays(window->slot);
  parts_.meters.stepped(delays);
  if (window != nullptr) set_delays(anchor, delays, window->settle_wait_ms());
}

void RoundDesk::run_prepare() {
  auto prepare = std::make_shared<ToPrepare>(std::get<ToPrepare>(std::exchange(step_, std::monostate{})));
  const auto r = rule_of(prepare->open);
  RoundContext context = context_of(prepare->open);
  const RunConfig& config = *parts_.options.config;
  context.inner = config.inner_step(prepare->open.step.value, std::max<std::uint64_t>(1, prepare->reduced->weight),
                                    prepare->open.run_targets, config.gradients_late());
  auto digest = std::make_shared<Result<Digest>>(Digest{});
  parts_.device.run(
      WorkKind::kPrepare,
      [r, context, prepare, digest](StageExecutor& executor) {
        *digest = r->prepare(executor, context, *prepare->reduced);
      },
      [this, prepare, digest] {
        if (digest->ok()) parts_.arena.prepared = prepare->open;
        prepare->done(*digest);
      });
}

bool RoundDesk::run_contribute() {
  const RoundOpen open = std::get<ToContribute>(step_).open;
  const auto r = rule_of(open);
  if (r->every_step()) {
    if (!parts_.ledger.step_ready(open.step)) return false;
  } else {
    if (open.last || parts_.ledger.leaving()) {
      parts_.windows.flush();
      if (!parts_.windows.empty()) return false;
    }
    if (parts_.arena.shift_pending) {  // the snapshot must hold what the last round agreed on
      if (parts_.windows.unsettled_at_other() > 0) return false;
      jobs_.apply_shift();
      return true;
    }
  }
  auto contribute = std::make_shared<ToContribute>(std::get<ToContribute>(std::exchange(step_, std::monostate{})));
  RoundContext context = context_of(open);
  auto result = std::make_shared<Contribution>();
  if (r->every_step()) {
    if (const Windows::Window* window = parts_.windows.step_window(contribute->open.step)) {
      for (const auto& [serial, entry] : window->entries) result->entries.push_back(serial);
    }
  } else {
    result->entries = parts_.windows.stepped();
    context.weight = parts_.windows.stepped_targets();
  }
  auto payload = std::make_shared<Result<Payload>>(Payload{});
  parts_.device.run(
      WorkKind::kContribute,
      [r, context, payload](StageExecutor& executor) { *payload = r->contribute(executor, context); },
      [contribute, result, payload] {
        SHOAL_FAULT("round.contributed");
        if (!payload->ok()) return contribute->done(payload->error());
        result->payload = **std::move(payload);
        contribute->done(std::move(*result));
      });
  return true;
}

}  // namespace shoal
