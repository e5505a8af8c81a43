// Messages, links, timers. What courier and ledger ask for: stage_peer_ports.cc; device jobs: stage_peer_jobs.cc;
// rounds: stage_peer_rounds.cc; catching up: stage_peer_shift.cc.
#include "runtime/stage_peer/stage_peer.h"

#include "common/fault.h"
#include "common/log.h"
#include "runtime/config/frames_allowed.h"
#include "runtime/stage_peer/stage_peer_parts.h"

namespace shoal {

namespace {
constexpr Duration kTick = 50ms;
constexpr Duration kBeat = 250ms;  // four of them without a word make a peer silent (Courier::kSilence)

HolderOptions holder_options(const StagePeerOptions& options) {
  HolderOptions result;
  result.self = options.self;
  if (!options.spec.is_last()) result.ahead = StageId(static_cast<std::uint16_t>(options.spec.stage.value + 1));
  result.authority = options.authority;
  result.lease = options.config->lease();
  result.planted = options.planted;
  return result;
}

LedgerOptions ledger_options(const StagePeerOptions& options) {
  LedgerOptions result;
  result.self = options.self;
  result.stage = options.spec.stage;
  result.stages = options.spec.stages;
  result.credits = options.credits;
  result.recovery_credits = std::max<std::size_t>(2, options.credits / 4);
  result.lease = options.config->lease();
  result.inner_batch = std::max<std::uint64_t>(1, options.config->sync.inner_batch);
  result.drain = options.config->sync.mode == SyncMode::kDrain;
  result.planted = options.planted;
  return result;
}

// Executors of whole numbers take rules that keep them whole, so that the anchor itself proves what was counted.
AllreduceOptions allreduce_options(const RunConfig& config) { return {config.executor.kind != ExecutorKind::kTorch}; }

DilocoOptions diloco_options(const RunConfig& config) {
  if (config.executor.kind != ExecutorKind::kTorch) return {1, 0, true};
  return {config.sync.outer_lr, config.sync.outer_momentum, false};
}
}  // namespace

StagePeer::StagePeer(StagePeerOptions options, StagePeerEnvironment environment, Owner& owner)
    : options_(std::move(options)),
      env_(std::move(environment)),
      owner_(owner),
      holder_(*this, env_.transport, holder_options(options_)),
      ledger_(*this, holder_, ledger_options(options_)),
      allreduce_(make_allreduce_rule(allreduce_options(*options_.config))),
      diloco_(make_diloco_rule(diloco_options(*options_.config))),
      round_(*this, env_.loop, options_.self, options_.spec.stage),
      waiting_(std::make_unique<Waiting>()),
      part_bytes_max_(env_.executor->arena().size() * sizeof(float)) {
  schedule_tick();
}

StagePeer::~StagePeer() { stop(); }

void StagePeer::serve(Version version, RuleId rule) {
  version_ = version;
  state_rule_ = rule;
  serving_ = true;
  rate_since_ = env_.loop.now();
  ledger_.set_serving(true);
  if (rule == RuleId::kAllreduce) ledger_.start_behind(StepId(version.value));  // a step is a version
  ledger_.wrote(env_.executor->stamp());
  owner_.on_version(version);
  pump();
}

void StagePeer::stop() {
  if (stopped_) return;
  stopped_ = true;
  *alive_ = false;
  round_.cancel();
  env_.loop.cancel(tick_timer_);
}

void StagePeer::leave() {
  leaving_ = true;
  ledger_.set_leaving(true);
  pump();
}

bool StagePeer::quiet() const {
  return ledger_.quiet() && !device_busy_ && !waiting_->contribute && !waiting_->prepare && !waiting_->commit &&
         !behind_;
}

std::string StagePeer::waiting_for() const {
  std::string text = std::to_string(ledger_.live()) + " open entries";
  if (round_.active()) text += ", a round";
  if (behind_) text += ", the state of version " + std::to_string(behind_->newest.value);
  return text;
}

void StagePeer::on_members(const MemberList& list) {
  const TimePoint now = env_.loop.now();
  for (const Session& session : holder_.on_members(list, now).over) {
    env_.transport.fence(session);
    ledger_.on_session_over(session, now);
  }
  pump();
}

void StagePeer::on_link_up(const Remote& remote) { holder_.on_link_up(remote, env_.loop.now()); }

void StagePeer::on_link_down(const Remote& remote) {
  const TimePoint now = env_.loop.now();
  std::erase_if(inbound_inputs_, [&](const auto& item) { return item.first.peer == remote.peer; });
  std::erase_if(inbound_parts_, [&](const auto& item) { return item.first.peer == remote.peer; });
  const Session session = holder_.on_link_down(remote, now);
  ledger_.on_link_down(session, now);
  pump();
}

void StagePeer::on_message(const Remote& from, Message& message, TransferId transfer, std::uint64_t frame_bytes) {
  const TimePoint now = env_.loop.now();
  const Session& session = from.session;
  const bool authority = from.peer == options_.authority;
  // Only the authority and members may claim, commit or move the low-water mark; a list that is behind costs
  // one retry.
  if (!holder_.admits(from)) {
    if (transfer != 0) env_.transport.refuse(from.peer, transfer);
    if (const auto* forward = std::get_if<Forward>(&message))
      (void)env_.transport.send(from.peer, Busy{forward->lease, BusyReason::kNotServing, 0});
    return;
  }
  if (refuses_frames(from, message, transfer, frame_bytes)) return;
  if (std::holds_alternative<Gradient>(message)) SHOAL_FAULT("peer.gradient_arrives");
  if (holder_.on_message(from, message, transfer, now)) {
  } else if (auto* m = std::get_if<Forward>(&message))
    on_forward(from, *m, transfer);
  else if (auto* m = std::get_if<Take>(&message))
    ledger_.on_take(session, *m, now);
  else if (auto* m = std::get_if<Release>(&message))
    ledger_.on_release(session, *m, now);
  else if (auto* m = std::get_if<Renew>(&message))
    ledger_.on_renew(session, *m, now);
  else if (auto* m = std::get_if<Hint>(&message))
    ledger_.on_hint(session, *m, now);
  else if (auto* m = std::get_if<shoal::Commit>(&message)) {
    note_run(m->run_targets, m->run_loss);
    ledger_.on_commit(session, *m, now);
  } else if (auto* m = std::get_if<Step>(&message); m && authority) {
    note_run(m->run_targets, m->run_loss);
    ledger_.on_step(*m, now);
  } else if (auto* m = std::get_if<RoundOpen>(&message); m && authority)
    round_.on_open(*m);
  else if (auto* m = std::get_if<RoundCommit>(&message); m && authority)
    round_.on_commit(*m);
  else if (auto* m = std::get_if<RoundAbandon>(&message); m && authority)
    round_.on_abandon(*m);
  else if (auto* m = std::get_if<RoundPart>(&message)) {
    if (transfer == 0)
      round_.on_part(session, *m, {});
    else
      inbound_parts_[{from.peer, transfer}] = *m;
  }
  pump();
}

bool StagePeer::refuses_frames(const Remote& from, const Message& message, TransferId transfer,
                               std::uint64_t frame_bytes) {
  if (transfer == 0 || frame_bytes <= frame_bytes_allowed(message, *options_.config, options_.spec, part_bytes_max_))
    return false;
  log_warning(name_of(message), " with ", frame_bytes, " bytes of frames from ", short_name(from.session), " refused");
  env_.transport.refuse(from.peer, transfer);
  if (const auto* forward = std::get_if<Forward>(&message))
    send(from.session, Busy{forward->lease, BusyReason::kMalformed, 0});
  return true;
}

void StagePeer::note_run(std::uint64_t targets, double loss) {
  holder_.note_run(targets, loss);
  ledger_.note_run(holder_.run_targets());
}

void StagePeer::on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames) {
  const InboundFrames key{from.peer, transfer};
  if (holder_.on_frames(from, transfer, frames, env_.loop.now())) return pump();
  if (const auto it = inbound_inputs_.find(key); it != inbound_inputs_.end()) {
    const EntrySerial serial = it->second;
    inbound_inputs_.erase(it);
    const std::size_t wanted = options_.spec.is_first() ? 1 : 2;
    const auto tensors = tensors_.find(serial);
    if (!frames.ok() || frames->size() != wanted || tensors == tensors_.end()) {
      ledger_.inputs_lost(serial, frames.ok() ? BusyReason::kMalformed : BusyReason::kFailed);
    } else {
      tensors->second->input = std::move(*frames);
      ledger_.inputs_arrived(serial);
    }
  } else if (const auto it = inbound_parts_.find(key); it != inbound_parts_.end()) {
    const RoundPart part = it->second;
    inbound_parts_.erase(it);
    if (frames.ok() && frames->size() == 1) round_.on_part(from.session, part, frames->front());
  }
  pump();
}

void StagePeer::on_forward(const Remote& from, const Forward& message, TransferId transfer) {
  // While behind, our anchor is an old one: it trains others' microbatches as well as before, but evaluates none.
  const bool old_anchor = behind_ && message.kind == ForwardKind::kEvaluate;
  if (message.stage != options_.spec.stage || transfer == 0 || old_anchor) {
    if (transfer != 0) env_.transport.refuse(from.peer, transfer);
    send(from.session, Busy{message.lease, BusyReason::kNotServing, 0});
    return;
  }
  const auto serial = ledger_.on_forward(from.session, message, transfer, env_.loop.now());
  if (!serial) return;
  last_accepted_ = env_.loop.now();
  auto tensors = std::make_shared<Tensors>();
  tensors->microbatch = message.microbatch;
  tensors_[*serial] = std::move(tensors);
  inbound_inputs_[{from.peer, transfer}] = *serial;
}

void StagePeer::schedule_tick() {
  tick_timer_ = env_.loop.after(kTick, [this, alive = alive_] {
    if (!*alive) return;
    schedule_tick();
    tick();
  });
}

void StagePeer::tick() {
  const TimePoint now = env_.loop.now();
  ledger_.tick(now);
  holder_.tick(now);
  const bool beat = now >= next_beat_;
  if (beat) {
    next_beat_ = now + kBeat;
    if (now - rate_since_ >= 2s) {
      const std::uint64_t counted = ledger_.counters().counted * options_.config->targets_per_microbatch();
      rate_ = static_cast<double>(counted - rate_counted_) / seconds_of(now - rate_since_);
      rate_counted_ = counted;
      rate_since_ = now;
    }
  }
  send_progress(beat);
  pump();
}

void StagePeer::send_progress(bool all) {
  std::unordered_map<Lease, HopPhase> now_told;
  for (auto& [holder, items] : ledger_.progress()) {
    Progress message;
    message.queue_ms = ledger_.queue_ms();
    for (const ProgressItem& item : items) {
      const auto known = told_.find(item.lease);
      if (all || known == told_.end() || known->second != item.phase) message.items.push_back(item);
      now_told[item.lease] = item.phase;
    }
    if (!message.items.empty()) send(holder, std::move(message));
  }
  told_ = std::move(now_told);
}

StagePeerStatus StagePeer::status() const {
  StagePeerStatus status;
  status.ledger = ledger_.counters();
  status.courier = holder_.courier().counters();
  status.settled_targets = ledger_.stepped_targets();
  status.inner_steps = inner_steps_;
  status.progress = progress_;
  status.run_targets = holder_.run_targets();
  status.run_loss = holder_.run_loss();
  status.graphs_dropped = graphs_dropped_;
  status.last_accepted = last_accepted_;
  status.device_busy = device_busy_;
  status.live = ledger_.live();
  status.queued = ledger_.queued();
  status.parked = holder_.courier().parked();
  status.queue_ms = ledger_.queue_ms();
  status.rate = rate_;
  status.fp32_bytes = fp32_bytes_;
  status.payload_bytes = payload_bytes_;
  status.version = version_;
  return status;
}

}  // namespace shoal
