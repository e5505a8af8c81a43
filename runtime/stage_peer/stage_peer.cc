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
      policy_(make_rendezvous_policy()),
      courier_(*this, *policy_, rates_, options_.self),
      ledger_(*this, ledger_options(options_)),
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
  const Roster::Change change = roster_.update(list);
  for (const StageMembers& stage : list.stages)
    for (const Member& member : stage.members)
      if (member.session != options_.self && !member.addresses.empty())
        env_.transport.learn(member.peer, member.addresses);
  for (const Session& session : change.over) {
    env_.transport.fence(session);
    courier_.on_session_over(session, env_.loop.now());
    ledger_.on_session_over(session, env_.loop.now());
  }
  pump();
}

void StagePeer::on_link_up(const Remote& remote) {
  if (remote.peer == options_.authority) authority_session_ = remote.session;
  roster_.note_up(remote.session);
  courier_.on_heard(remote.session, env_.loop.now());
}

void StagePeer::on_link_down(const Remote& remote) {
  const TimePoint now = env_.loop.now();
  Session session = remote.session;
  if (session == Session{})  // a dial that failed: whichever member has that key
    if (const auto member = roster_.session_of(remote.peer)) session = *member;
  std::erase_if(inbound_gradients_, [&](const auto& item) { return item.first.peer == remote.peer; });
  std::erase_if(inbound_inputs_, [&](const auto& item) { return item.first.peer == remote.peer; });
  std::erase_if(inbound_parts_, [&](const auto& item) { return item.first.peer == remote.peer; });
  roster_.note_down(session, now);
  courier_.on_link_down(session, now);
  ledger_.on_link_down(session, now);
  pump();
}

void StagePeer::on_message(const Remote& from, Message& message, TransferId transfer, std::uint64_t frame_bytes) {
  const TimePoint now = env_.loop.now();
  const Session& session = from.session;
  const bool authority = from.peer == options_.authority;
  // Only the authority and members may claim, commit or move the low-water mark; a list that is behind costs
  // one retry.
  if (!authority && roster_.peer_of(session) != from.peer) {
    if (transfer != 0) env_.transport.refuse(from.peer, transfer);
    if (const auto* forward = std::get_if<Forward>(&message))
      (void)env_.transport.send(from.peer, Busy{forward->lease, BusyReason::kNotServing, 0});
    return;
  }
  if (refuses_frames(from, message, transfer, frame_bytes)) return;
  courier_.on_heard(session, now);
  if (auto* m = std::get_if<Forward>(&message))
    on_forward(from, *m, transfer);
  else if (auto* m = std::get_if<Gradient>(&message))
    on_gradient(from, *m, transfer);
  else if (auto* m = std::get_if<Take>(&message))
    ledger_.on_take(session, *m, now);
  else if (auto* m = std::get_if<Busy>(&message))
    courier_.on_busy(session, *m, now);
  else if (auto* m = std::get_if<Have>(&message))
    courier_.on_have(session, *m, now);
  else if (auto* m = std::get_if<Gone>(&message))
    courier_.on_gone(session, *m, now);
  else if (auto* m = std::get_if<NeedKeyFrame>(&message))
    courier_.on_need_key_frame(session, *m, now);
  else if (auto* m = std::get_if<Release>(&message))
    ledger_.on_release(session, *m, now);
  else if (auto* m = std::get_if<Renew>(&message))
    ledger_.on_renew(session, *m, now);
  else if (auto* m = std::get_if<Progress>(&message))
    courier_.on_progress(session, *m, now);
  else if (auto* m = std::get_if<shoal::Waiting>(&message))
    courier_.on_waiting(session, *m, now);
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
  if (targets <= run_targets_) return;
  run_targets_ = targets;
  run_loss_ = loss;
  ledger_.note_run(targets);
}

void StagePeer::on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames) {
  const TimePoint now = env_.loop.now();
  const Inbound key{from.peer, transfer};
  courier_.on_heard(from.session, now);
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
  } else if (const auto it = inbound_gradients_.find(key); it != inbound_gradients_.end()) {
    const Gradient message = std::move(it->second);
    inbound_gradients_.erase(it);
    if (frames.ok())
      courier_.on_gradient(from.session, message, std::move(*frames), now);
    else
      courier_.on_gone(from.session, Gone{message.lease}, now);
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

void StagePeer::on_gradient(const Remote& from, const Gradient& message, TransferId transfer) {
  SHOAL_FAULT("peer.gradient_arrives");
  const TimePoint now = env_.loop.now();
  if (!courier_.wants(from.session, message, now)) {
    if (transfer != 0) env_.transport.refuse(from.peer, transfer);
    return;
  }
  if (transfer == 0)
    courier_.on_gradient(from.session, message, {}, now);
  else
    inbound_gradients_[{from.peer, transfer}] = message;
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
  courier_.tick(now);
  const bool beat = now >= next_beat_;
  if (beat) {
    next_beat_ = now + kBeat;
    const StageId next(static_cast<std::uint16_t>(options_.spec.stage.value + 1));
    if (!options_.spec.is_last())
      for (const Session& session : roster_.candidates(next, now))
        if (const auto peer = roster_.peer_of(session)) {
          const LinkStats link = env_.transport.stats(*peer);
          if (link.up) rates_.set_link(session, link.bytes_per_second, link.rtt);
        }
    if (now - rate_since_ >= 2s) {
      const std::uint64_t counted = ledger_.counters().counted * options_.config->targets_per_microbatch();
      rate_ = static_cast<double>(counted - rate_counted_) / seconds_of(now - rate_since_);
      rate_counted_ = counted;
      rate_since_ = now;
    }
  }
  send_progress(beat);
  if (now >= next_renewal_) {
    next_renewal_ = now + options_.config->lease() / 6;
    send_renewals();
  }
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

void StagePeer::send_renewals() {
  for (auto& [session, leases] : courier_.renewals()) {
    Renew message;
    message.leases = std::move(leases);
    send(session, std::move(message));
  }
}

Result<TransferId> StagePeer::send_to(const Session& to, Message message, std::vector<Bytes> frames) {
  std::optional<PeerId> peer = roster_.peer_of(to);
  if (!peer && authority_session_ == to) peer = options_.authority;
  if (!peer) return make_error(ErrorCode::kUnreachable, "session " + short_name(to) + " is no member");
  const auto remote = env_.transport.remote(*peer);
  if (remote && remote->session != to) return make_error(ErrorCode::kStale, "session " + short_name(to) + " is over");
  return env_.transport.send(*peer, std::move(message), std::move(frames));
}

StagePeerStatus StagePeer::status() const {
  StagePeerStatus status;
  status.ledger = ledger_.counters();
  status.courier = courier_.counters();
  status.settled_targets = ledger_.stepped_targets();
  status.inner_steps = inner_steps_;
  status.progress = progress_;
  status.run_targets = run_targets_;
  status.run_loss = run_loss_;
  status.graphs_dropped = graphs_dropped_;
  status.last_accepted = last_accepted_;
  status.device_busy = device_busy_;
  status.live = ledger_.live();
  status.queued = ledger_.queued();
  status.parked = courier_.parked();
  status.queue_ms = ledger_.queue_ms();
  status.rate = rate_;
  status.fp32_bytes = fp32_bytes_;
  status.payload_bytes = payload_bytes_;
  status.version = version_;
  return status;
}

}  // namespace shoal
