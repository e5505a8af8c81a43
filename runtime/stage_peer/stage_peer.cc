// Messages, links, timers. What courier and ledger ask for: stage_peer_ports.cc.
#include "runtime/stage_peer/stage_peer.h"

#include "common/fault.h"
#include "common/log.h"
#include "common/trainer_id.h"
#include "runtime/config/frames_allowed.h"
#include "runtime/stage_peer/evaluation.h"

namespace shoal {

namespace {
constexpr Duration kTick = 50ms;
constexpr Duration kBeat = 250ms;  // four of them without a word make a peer silent (PeerHealth::kSilence)

CourierOptions courier_options(const StagePeerOptions& options) {
  CourierOptions result;
  if (!options.spec.is_last()) result.ahead = StageId(static_cast<std::uint16_t>(options.spec.stage.value + 1));
  result.lease = options.config->lease();
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
  return result;
}

WindowsOptions windows_options(const RunConfig& config) {
  return {.inner_batch = std::max<std::uint64_t>(1, config.sync.inner_batch),
          .delay_max = config.optimizer.delay_max,
          .drain = config.sync.mode == SyncMode::kDrain};
}

// Rounded up: what was measured is not zero.
std::uint32_t milliseconds_up(Duration d) {
  return static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::milliseconds>(d).count());
}

std::uint64_t activation_bytes(const RunConfig& config) {
  return config.targets_per_microbatch() * config.model.dim * sizeof(float);
}

// A microbatch that nobody will ever decide: its claims would keep what is counted beside it from being stepped. The
// trainer issues none a whole window above its low-water mark, of which the newest may be on its way here.
bool never_issued(const Forward& message, const StagePeerOptions& options, const Ledger& ledger) {
  const MicrobatchId& id = message.microbatch;
  if (message.kind != ForwardKind::kTrain) return false;
  if (id.trainer != trainer_id_of(options.authority)) return true;
  const std::uint64_t low = ledger.low_of(id.trainer);
  return low > 0 && id.serial > low && id.serial - low >= 2 * options.config->id_window();
}

}  // namespace

StagePeer::StagePeer(StagePeerOptions options, StagePeerEnvironment environment, Owner& owner)
    : options_(std::move(options)),
      env_(std::move(environment)),
      owner_(owner),
      part_bytes_max_(env_.executor->arena().size() * sizeof(float)),
      neighbours_(env_.transport, options_.self, options_.authority),
      courier_(*this, neighbours_, courier_options(options_)),
      windows_(windows_options(*options_.config)),
      ledger_(*this, courier_, windows_, ledger_options(options_)),
      bases_(options_.config->base_bytes()),
      meters_(options_.config->targets_per_microbatch(), activation_bytes(*options_.config)),
      device_(env_.device, env_.loop, env_.executor, *this),
      jobs_(parts(), tensors_),
      rounds_(parts(), jobs_) {
  schedule_tick();
}

StagePeer::~StagePeer() { stop(); }

void StagePeer::serve(Version version, RuleId rule, StepId done) {
  arena_.version = version;
  arena_.rule = rule;
  meters_.start(env_.loop.now());
  arena_.serving = true;
  arena_.step_done = done;
  if (traits_of(rule).every_step) {  // the moments came with it
    windows_.start_behind(done);
    arena_.adam_step = done.value;
  }
  windows_.wrote(env_.executor->stamp());
  owner_.on_version(version);
  device_.pump();
}

void StagePeer::stop() {
  if (stopped()) return;
  device_.stop();
  rounds_.cancel();
  env_.loop.cancel(tick_timer_);
}

StageParts StagePeer::parts() {
  return {.options = options_,
          .env = env_,
          .owner = owner_,
          .neighbours = neighbours_,
          .courier = courier_,
          .windows = windows_,
          .ledger = ledger_,
          .device = device_,
          .meters = meters_,
          .arena = arena_,
          .bases = bases_};
}

void StagePeer::run_on_device(WorkKind task, std::function<void(StageExecutor&)> job, std::function<void()> done) {
  device_.ask(task, std::move(job), std::move(done));
}

void StagePeer::start_next() {
  if (!serving()) return;
  windows_.note_time(env_.loop.now());
  if (ledger_.leaving()) windows_.flush();
  if (const auto release = ledger_.release_job()) return jobs_.start(*release);
  if (rounds_.start_next()) return;
  if (const auto job = ledger_.next_job(arena_.shift_pending)) jobs_.start(*job);
}

void StagePeer::leave() {
  ledger_.set_leaving(true);
  device_.pump();
}

bool StagePeer::quiet() const { return ledger_.quiet() && device_.idle() && rounds_.quiet(); }

std::string StagePeer::waiting_for() const {
  std::string text = std::to_string(ledger_.live()) + " open entries";
  if (rounds_.active()) text += ", a round";
  if (const auto missed = rounds_.behind()) text += ", the state of version " + std::to_string(missed->value);
  return text;
}

void StagePeer::on_members(const MemberList& list) {
  const TimePoint now = env_.loop.now();
  for (const Session& session : courier_.on_members(list, now).over) {
    env_.transport.fence(session);
    ledger_.on_session_over(session);
    bases_.forget(session);
  }
  device_.pump();
}

void StagePeer::on_link_up(const Remote& remote) { courier_.on_link_up(remote, env_.loop.now()); }

void StagePeer::on_link_down(const Remote& remote) {
  const TimePoint now = env_.loop.now();
  tensors_.forget_link(remote.peer);
  rounds_.forget_link(remote.peer);
  const Session session = courier_.on_link_down(remote, now);
  ledger_.on_link_down(session, now);
  device_.pump();
}

void StagePeer::on_message(const Remote& from, Message& message, TransferId transfer, std::uint64_t frame_bytes) {
  const TimePoint now = env_.loop.now();
  windows_.note_time(now);
  const Session& session = from.session;
  const bool authority = neighbours_.is_trainer(from);
  // Only the authority and members may claim; a list that is behind costs one retry.
  if (!neighbours_.admits(from)) {
    if (transfer != 0) env_.transport.refuse(from.peer, transfer);
    if (const auto* forward = std::get_if<Forward>(&message))
      (void)env_.transport.send(from.peer, Busy{forward->lease, BusyReason::kNotServing, 0});
    return;
  }
  if (refuses_frames(from, message, transfer, frame_bytes)) return;
  if (std::holds_alternative<Gradient>(message)) SHOAL_FAULT("peer.gradient_arrives");
  if (authority) ledger_.heard_trainer(now);
  if (courier_.on_message(from, message, transfer, now)) {
  } else if (auto* m = std::get_if<Forward>(&message))
    on_forward(from, *m, transfer);
  else if (auto* m = std::get_if<Take>(&message))
    ledger_.on_take(session, *m, now);
  else if (auto* m = std::get_if<Release>(&message))
    ledger_.on_release(session, *m);
  else if (auto* m = std::get_if<Renew>(&message)) {
    if (authority) ledger_.on_lows(m->lows);
    ledger_.on_renew(session, *m, now);
  } else if (auto* m = std::get_if<Hint>(&message))
    ledger_.on_hint(session, *m, now);
  else if (auto* m = std::get_if<Commit>(&message); m && authority) {
    note_run(m->run_targets, m->run_loss);
    ledger_.on_commit(session, *m);
  } else if (m != nullptr) {
    ledger_.on_hearsay(*m, now);
  } else if (auto* m = std::get_if<Step>(&message); m && authority) {
    note_run(m->run_targets, m->run_loss);
    ledger_.on_step(*m);
  } else {
    (void)rounds_.on_message(from, message, transfer);
  }
  device_.pump();
}

bool StagePeer::refuses_frames(const Remote& from, const Message& message, TransferId transfer,
                               std::uint64_t frame_bytes) {
  if (transfer == 0 || frame_bytes <= frame_bytes_allowed(message, *options_.config, options_.spec, part_bytes_max_))
    return false;
  if (const auto times = said_.due(std::string(name_of(message)) + short_name(from.session), env_.loop.now()))
    log_warning(name_of(message), " with ", frame_bytes, " bytes of frames from ", short_name(from.session), " refused",
                LogThrottle::text_of(*times));
  env_.transport.refuse(from.peer, transfer);
  if (const auto* forward = std::get_if<Forward>(&message))
    send(from.session, Busy{forward->lease, BusyReason::kMalformed, 0});
  return true;
}

void StagePeer::note_run(std::uint64_t targets, double loss) {
  if (targets > windows_.run_targets()) run_loss_ = loss;
  windows_.note_run(targets);
}

void StagePeer::on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames) {
  if (!courier_.on_frames(from, transfer, frames, env_.loop.now())) {
    if (const auto serial = tensors_.arrived({from.peer, transfer}))
      on_input(*serial, frames);
    else
      rounds_.on_frames(from, transfer, frames);
  }
  device_.pump();
}

void StagePeer::on_input(EntrySerial serial, Result<std::vector<Bytes>>& frames) {
  if (!frames.ok()) return ledger_.inputs_lost(serial, BusyReason::kFailed);
  const auto tensors = tensors_.find(serial);
  const std::size_t wanted = options_.spec.is_first() ? 1 : 2;
  if (tensors == nullptr || frames->size() != wanted) return ledger_.inputs_lost(serial, BusyReason::kMalformed);
  tensors->input = std::move(*frames);
  ledger_.inputs_arrived(serial, env_.loop.now());
}

void StagePeer::on_forward(const Remote& from, const Forward& message, TransferId transfer) {
  // The holder of what this stage needs is the trainer, or a peer of the stage before.
  const StageId stage = options_.spec.stage;
  const bool holds = options_.spec.is_first() ? neighbours_.is_trainer(from)
                                              : neighbours_.roster().stage_of(from.session) ==
                                                    StageId(static_cast<std::uint16_t>(stage.value - 1));
  auto why = holds ? unfit(message, transfer) : BusyReason::kNotServing;
  if (!why && jobs_.rests(from.session)) why = BusyReason::kFailed;
  if (!why && never_issued(message, options_, ledger_)) {
    why = BusyReason::kMalformed;
    if (const auto times = said_.due("issued" + short_name(from.session), env_.loop.now()))
      log_warning("stage ", stage, ": microbatch ", message.microbatch, " of session ", short_name(from.session),
                  " refused: the run's trainer issued no such one", LogThrottle::text_of(*times));
  }
  if (why) {
    if (transfer != 0) env_.transport.refuse(from.peer, transfer);
    send(from.session, Busy{message.lease, *why, 0});
    return;
  }
  const auto serial = ledger_.on_forward(from.session, message, transfer, env_.loop.now());
  if (!serial) return;
  meters_.accepted(env_.loop.now());
  tensors_.await(*serial, message.microbatch, {from.peer, transfer});
}

// While behind, our anchor trains others' microbatches as well as before, but evaluates none.
std::optional<BusyReason> StagePeer::unfit(const Forward& message, TransferId transfer) const {
  if (message.stage != options_.spec.stage || transfer == 0 || !serving()) return BusyReason::kNotServing;
  return evaluation_refused(message, options_.spec, rounds_.anchor_for_next_job());
}

void StagePeer::schedule_tick() {
  tick_timer_ = env_.loop.after(kTick, [this] {  // stop() cancels it
    schedule_tick();
    tick();
  });
}

void StagePeer::tick() {
  env_.loop.name_callback("stage tick");
  const TimePoint now = env_.loop.now();
  windows_.note_time(now);
  ledger_.tick(now);
  courier_.tick(now);
  note_stranded();
  const bool beat = now >= next_beat_;
  if (beat) {
    next_beat_ = now + kBeat;
    meters_.measure(ledger_.counters().counted, now);
  }
  send_progress(beat);
  device_.pump();
}

// Others get the work meanwhile, so an open window would not fill: what it holds is stepped, and a round can secure it.
void StagePeer::note_stranded() {
  const bool stranded = courier_.stranded();
  if (stranded) windows_.flush();
  if (std::exchange(stranded_, stranded) == stranded) return;
  const std::string next = "stage " + std::to_string(options_.spec.stage.value + 1);
  if (stranded)
    log_warning("no peer of ", next, " answers: other peers of this stage are asked meanwhile");
  else
    log_info("a peer of ", next, " answers again");
}

void StagePeer::send_progress(bool all) {
  std::unordered_map<Lease, HopPhase> now_told;
  for (auto& [holder, items] : ledger_.progress()) {
    Progress message;
    message.queue_ms = ledger_.queue_ms();
    message.job_ms = job_ms();
    for (const ProgressItem& item : items) {
      const auto known = told_.find(item.lease);
      if (all || known == told_.end() || known->second != item.phase) message.items.push_back(item);
      now_told[item.lease] = item.phase;
    }
    if (!message.items.empty()) send(holder, std::move(message));
  }
  told_ = std::move(now_told);
}

std::uint32_t StagePeer::job_ms() const {
  return device_.idle() ? 0 : std::max(1u, milliseconds_up(device_.running()));
}

StagePeerStatus StagePeer::status() const {
  StagePeerStatus status;
  status.ledger = ledger_.counters();
  status.courier = courier_.counters();
  status.settled_targets = windows_.stepped_targets();
  status.inner_steps = meters_.readings().inner_steps;
  status.delay = meters_.readings().delay;
  status.run_targets = windows_.run_targets();
  status.run_loss = run_loss_;
  status.graphs_dropped = meters_.readings().graphs_dropped;
  status.last_accepted = meters_.readings().last_accepted;
  status.device_busy = !device_.idle();
  status.job_ms = job_ms();
  status.longest_ms = milliseconds_up(device_.longest_of_kind());
  status.longest_job = device_.longest();
  status.live = ledger_.live();
  status.queued = ledger_.queued();
  status.parked = courier_.parked();
  status.queue_ms = ledger_.queue_ms();
  status.stranded = courier_.stranded();
  status.rate = meters_.readings().rate;
  status.forward_us = meters_.readings().forward_us;
  status.backward_us = meters_.readings().backward_us;
  status.bases = bases_.counters();
  status.fp32_bytes = meters_.readings().fp32_bytes;
  status.payload_bytes = meters_.readings().payload_bytes;
  status.version = arena_.version;
  return status;
}

}  // namespace shoal
