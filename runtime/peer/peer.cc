// The sessions of a peer, from the first to its end, and what it tells of itself.
#include "runtime/peer/peer.h"

#include <algorithm>
#include <cmath>

#include "authority/patience.h"
#include "runtime/plan/stage_memory.h"

namespace shoal {

namespace {
constexpr Duration kTick = 100ms;
constexpr Duration kBytesPeriod = 1s;  // so a killed process leaves out a second at most
constexpr Duration kFarewell = 100ms;  // for the last record to reach the DHT, before nothing keeps it alive any more

// For the job under way.
Duration patience_of(const DeviceWatch& device, const RunConfig& config) {
  return job_patience(device.longest(), config.membership());
}
}  // namespace

Peer::Peer(PeerOptions options, PeerEnvironment environment, Owner& owner)
    : options_(std::move(options)),
      env_(std::move(environment)),
      events_(env_.events),
      owner_(owner),
      link_({.first = options_.contact_time, .absence = options_.absence_time}),
      reachability_({.first = options_.contact_time, .returning = options_.absence_time}),
      checkpointing_({.run = options_.run, .key = options_.key, .folders = options_.checkpoint_folders}, env_.storage,
                     env_.loop, env_.aside, [this](const std::string& warning) { owner_.on_warning(warning); }),
      device_(env_.device, env_.loop),
      announcing_(env_.directory, env_.loop, options_.key, options_.run, options_.whereabouts) {}

Peer::~Peer() { env_.loop.cancel(timer_); }

void Peer::start() {
  link_.start(env_.loop.now());
  kept_.replace(checkpointing_.load());
  begin_session();
  tick();
}

// ---- sessions ----
void Peer::begin_session() {
  ++sessions_;
  life_ = std::make_unique<Life>();
  life_->session = Session::of(options_.key.id(), env_.rng.next());
  events_.set_session(life_->session);
  events_.write({.event = EventKind::kStart});
  state_.because("reaching the authority");
  announcing_.begin_session();
  checkpointing_.came_to_nothing();  // what the session before was at
  life_->transport = std::make_unique<Transport>(env_.wire, env_.loop,
                                                 Transport::Options{.run = options_.run,
                                                                    .self = options_.key.id(),
                                                                    .session = life_->session,
                                                                    .role = PeerRole::kPeer,
                                                                    .whereabouts = options_.whereabouts});
  life_->transport->set_listener(this);
  life_->transport->learn(authority(), options_.authority);
  life_->transport->dial(authority());
}

void Peer::end_session(const std::string& why) {
  if (!state_.in_session()) return;
  over_at_ = device_.time();
  if (absence_.is(AbsencePhase::kLeaving)) return finish("left; the session was over already: " + why, std::nullopt);
  if (options_.once && !absence_.pause())
    return finish("", make_error(ErrorCode::kStale, "session " + short_name(session()) + " is over: " + why));
  if (!absence_.pause()) owner_.on_notice("session " + short_name(session()) + " is over (" + why + "): joining again");
  absence_.session_over(status().settled_targets);
  state_.move(PeerPhase::kRestarting, why);
  life_->lifetime.end();
  if (life_->stage) life_->stage->stop();
  if (life_->membership) life_->membership->stop();
  // The rest waits until no caller of ours stands on what is taken down. What those still say stands before its end.
  env_.loop.post(lifetime_.guard([this, why] {
    if (!state_.is(PeerPhase::kRestarting)) return;
    events_.write({.event = EventKind::kFenced, .cause = why});
    keep_state();
  }));
}

void Peer::keep_state() {
  auto source = life_->stage ? life_->stage->source() : std::nullopt;
  // A pause is to be short, and others have the state, unless nobody has.
  if (!source || (absence_.pause() && !absence_.pause()->last_holder)) return restart({});
  auto images = std::make_shared<KeptState::Images>();
  device_.run(
      WorkKind::kImage, [images, source = *std::move(source)] { *images = KeptState::take(source); },
      lifetime_.guard([this, images] {
        if (state_.is(PeerPhase::kRestarting)) restart(std::move(*images));
      }));
}

void Peer::restart(KeptState::Images images) {
  kept_.replace(std::move(images));
  traffic_.end_session(session_traffic());
  auto executor = life_->stage ? life_->stage->executor() : nullptr;
  life_.reset();
  const bool pauses = absence_.pause().has_value();
  // Its arrays are given back on the device.
  if (executor || pauses)
    device_.run(
        WorkKind::kDrop,
        [executor = std::move(executor), free_caches = pauses ? env_.free_caches : nullptr]() mutable {
          executor.reset();
          if (free_caches) free_caches();
        },
        lifetime_.guard([this, since = absence_.since()] {
          if (state_.is(PeerPhase::kPaused) && absence_.freed(since, env_.loop.now()))
            owner_.on_paused(*absence_.pause());
        }));
  if (!pauses) {
    state_.move(PeerPhase::kConnecting, "");
    return begin_session();
  }
  state_.move(PeerPhase::kPaused, absence_.pause()->why);
  if (spec_) announcing_.withdraw(spec_->stage);
  reachability_.link_down();
  if (absence_.session_down()) set_pause({});
}

void Peer::finish(const std::string& reason, std::optional<Error> error) {
  if (state_.is(PeerPhase::kOver)) return;
  if (!error) error = absence_.cause();
  state_.move(PeerPhase::kOver, reason);
  env_.loop.cancel(timer_);
  write_bytes();
  if (life_) {
    life_->lifetime.end();
    if (life_->stage) life_->stage->stop();
    if (life_->membership) life_->membership->leave_at_once();
    announce();  // the last one: not serving any more
  }
  if (spec_) env_.loop.after(kFarewell, lifetime_.guard([this, stage = spec_->stage] { announcing_.withdraw(stage); }));
  // What callers of ours still say stands before the end.
  env_.loop.post(lifetime_.guard([this, reason, error = std::move(error)] {
    events_.write({.event = EventKind::kEnd, .cause = error ? error->message : reason});
    owner_.on_finished(reason, error);
  }));
}

// ---- time ----
void Peer::tick() {
  env_.loop.name_callback("peer tick");
  timer_ = env_.loop.after(kTick, lifetime_.guard([this] { tick(); }));
  const TimePoint now = env_.loop.now();
  if (!check_device() || state_.is(PeerPhase::kPaused)) return;
  if (!authority_is_linked() && link_.take_dial(now)) {
    life_->transport->dial(authority());
    look_up_authority();
  }
  check_patience(now);
  if (state_.is(PeerPhase::kOver)) return;
  if (life_->answer && spec_) announcing_.announce_if_due(facts());
  if (authority_is_linked()) exchange_peers();
  if (now >= next_bytes_) write_bytes();
  if (absence_.goes()) check_going();
}

// A job that was under way when the session ended, and for longer than the authority waits for one.
Duration Peer::device_hung() const {
  if (!config_ || !over_at_ || device_.busy_since() > *over_at_) return Duration(0);
  return device_.busy_for() > patience_of(device_, *config_) ? device_.busy_for() : Duration(0);
}

void Peer::tell_of_processor() {
  if (!options_.on_processor || !config_ || !life_ || !device_.busy()) return;
  const auto text = [](Duration time) { return std::to_string(static_cast<int>(seconds_of(time))) + " s"; };
  const Duration worked = device_.busy_for(), starved = device_.starved_for();
  if (device_hung() > Duration(0) && state_.is(PeerPhase::kRestarting) && !std::exchange(life_->waiting_told, true)) {
    state_.because("waiting for a job of the session before");
    owner_.on_warning("a job of the session before has run for " + text(worked) + " and does not end: this process " +
                      "waits for it, then joins again. HINT: does this machine swap (free, vmstat)? More "
                      "[pipeline] stages make each one smaller");
  }
  if (worked + starved <= patience_of(device_, *config_) || worked > starved ||
      std::exchange(life_->starving_told, true))
    return;
  owner_.on_notice("other programs have this machine's processor: a job that began " + text(worked + starved) +
                   " ago stood without it for " + text(starved) +
                   ". Nothing is lost by it, and the run waits for it. HINT: uptime and top show them");
}

// The next session would stand behind the job for ever: what waits for a device cannot be ended, a process can.
bool Peer::check_device() {
  device_.look();
  tell_of_processor();
  if (options_.on_processor || device_hung() == Duration(0)) return true;
  finish("", make_error(ErrorCode::kTimeout,
                        "device hung for " + std::to_string(static_cast<int>(seconds_of(device_hung()))) +
                            " s, and the session was fenced for it: this process ends. HINT: start it again, as "
                            "systemd does with Restart=on-failure; when it hangs again, look at the device (dmesg, "
                            "nvidia-smi)"));
  return false;
}

void Peer::check_patience(TimePoint now) {
  if (const Status there = link_.check(now, state_.reason()); !there.ok()) return finish("", there.error());
  if (const auto line = link_.absence_line(now, state_.reason())) owner_.on_notice(*line);
  if (life_->stage) life_->stage->tick(now);
  if (const Status dialled = reachability_.check(now); !dialled.ok()) finish("", dialled.error());
}

// ---- what others decide about the session ----
void Peer::on_fenced(const std::string& reason) { end_session("fenced: " + reason); }
void Peer::on_end(const std::string& reason) {
  if (state_.is(PeerPhase::kOver)) return;
  send_to_authority(Goodbye{});  // it need not wait for us
  if (end_ && life_->membership && life_->membership->list())
    for (const StageMembers& stage : life_->membership->list()->stages)
      for (const Member& member : stage.members)
        if (life_->transport->remote(member.peer)) send(member.peer, *end_);
  if (reachability_.ever_admitted()) return finish("the run is over: " + reason, std::nullopt);
  finish("", make_error(ErrorCode::kGone, "never admitted, and the run is over: " + reason +
                                              (reachability_.why().empty() ? "" : " (" + reachability_.why() + ")")));
}
void Peer::on_goodbye() {
  if (!absence_.goes() || absence_.is(AbsencePhase::kLeaving)) return finish("left", std::nullopt);
  end_session(absence_.let_go());
}

// ---- beats ----
Beat Peer::make_beat() {
  Beat beat;
  if (spec_) beat.stage = spec_->stage;
  beat.leaving = absence_.goes();
  if (spec_ && !(life_->stage && life_->stage->serving())) beat.held = checkpointing_.held(spec_->stage, kept_);
  beat.capacity.memory_bytes = options_.memory_bytes > 0 ? options_.memory_bytes : options_.device_memory;
  if (env_.memory_used) beat.capacity.memory_used = env_.memory_used();
  if (spec_) beat.on_disk = checkpointing_.newest(spec_->stage);
  if (stage_peer() == nullptr) return beat;
  const StagePeerStatus status = stage_peer()->status();
  beat.version = life_->stage->reached();
  // Also while it leaves: it takes part in the round that secures its work, and gives its state to others.
  beat.serving = life_->stage->serving();
  beat.inner_steps = status.inner_steps;
  beat.settled_targets = status.settled_targets;
  beat.job_ms = status.job_ms;
  beat.longest_ms = status.longest_ms;
  beat.stranded = status.stranded;
  beat.behind = life_->stage->behind();
  beat.movable = !options_.wish && !options_.once && beat.serving && !beat.leaving;
  beat.delay_milli =
      static_cast<std::uint16_t>(std::lround(1000 * status.delay));  // below 1000 * DelayHistogram::kBins
  if (status.forward_us) beat.capacity.forward_us = static_cast<std::uint32_t>(std::lround(*status.forward_us));
  if (status.backward_us) beat.capacity.backward_us = static_cast<std::uint32_t>(std::lround(*status.backward_us));
  return beat;
}

// ---- figures and events ----
StagePeerStatus Peer::status() const { return stage_peer() != nullptr ? stage_peer()->status() : StagePeerStatus{}; }

Traffic Peer::session_traffic() const {
  if (!life_) return {};
  const TransportCounters counters = life_->transport->counters();
  const StagePeerStatus now = status();
  return {.sent = counters.sent_bytes,
          .received = counters.received_bytes,
          .fp32 = now.fp32_bytes,
          .payload = now.payload_bytes,
          .deltas = now.bases.deltas,
          .keys = now.bases.keys};
}

PeerReport Peer::report() const {
  PeerReport report;
  report.phase = absence_.goes() && !state_.is(PeerPhase::kOver) ? PeerPhase::kLeaving : state_.phase();
  report.reason = state_.reason();
  if (spec_) report.stage = spec_->stage;
  report.status = status();
  const Membership* const membership = life_ ? life_->membership.get() : nullptr;
  std::optional<StageId> empty;
  if (membership) empty = membership->empty_stage();
  if (report.status.parked > 0) empty = StageId(spec_->stage.value + 1);
  if (report.reason.empty() && empty && state_.is(PeerPhase::kServing))
    report.reason = "waiting: stage " + std::to_string(empty->value) + " has no peer";
  if (report.reason.empty() && report.status.stranded)
    report.reason = "waiting: this machine reaches no peer of stage " + std::to_string(spec_->stage.value + 1);
  report.traffic = traffic_.total(session_traffic());
  if (life_ && life_->stage) {
    report.fetched_bytes = life_->stage->fetched();
    report.fetch_total = life_->stage->fetch_total();
  }
  report.run = run_status_;
  report.config = config_;
  if (membership && membership->list()) report.list = &*membership->list();
  report.sessions = sessions_;
  if (spec_) report.on_disk = checkpointing_.newest(spec_->stage);
  if (spec_) report.memory_needed = process_bytes(*served_, *spec_, credits_, options_.program_bytes);
  report.pause = absence_.pause();
  report.job_under_way = device_.busy();
  return report;
}

void Peer::write_bytes() {
  next_bytes_ = env_.loop.now() + kBytesPeriod;
  const Traffic added = traffic_.take_unwritten(session_traffic());
  const auto longest = env_.loop.take_longest_callback();
  if (longest && (!longest_callback_ || longest->took > longest_callback_->took)) longest_callback_ = longest;
  EventRecord bytes{.event = EventKind::kBytes,
                    .sent = added.sent,
                    .received = added.received,
                    .fp32 = added.fp32,
                    .payload = added.payload};
  if (config_ && config_->keeps_bases()) {
    bytes.deltas = added.deltas;
    bytes.keys = added.keys;
  }
  events_.write(bytes_event(std::move(bytes), longest));
}

std::optional<std::pair<StageId, Version>> Peer::held_state() const {
  if (const auto kept = kept_.newest()) return kept;
  const StagePeer* const here = stage_peer();
  if (here != nullptr && here->version() > Version(0)) return std::pair{spec_->stage, here->version()};
  return std::nullopt;
}

bool Peer::holds_alone() const {
  return life_->membership && life_->membership->last_holder() && held_state().has_value();
}

void Peer::on_serving(Version version) {
  owner_.on_notice("serving stage " + std::to_string(spec_->stage.value) + " from version " +
                   std::to_string(version.value));
  life_->membership->beat_now();
  announce();
}

// ---- pauses ----
void Peer::set_pause(const std::optional<std::string>& why) {
  if (state_.is(PeerPhase::kOver)) return;
  if (!why) {
    if (!absence_.resume()) return;
    owner_.on_notice("resumed: joining again");
    link_.resume(env_.loop.now());
    state_.move(PeerPhase::kConnecting, "");
    return begin_session();
  }
  if (absence_.is(AbsencePhase::kLeaving)) return;
  const bool restarting = state_.is(PeerPhase::kRestarting);
  const bool counts = !restarting && stage_peer() != nullptr && life_->stage->serving();
  if (!absence_.begin_pause(env_.loop.now(), *why, counts)) {
    if (state_.is(PeerPhase::kPaused)) state_.because(*why);
    return;
  }
  if (counts) return begin_going("pausing (" + *why + "): no new microbatches, ", "");
  if (restarting) return absence_.note_last_holder(holds_alone());
  if (life_->membership) life_->membership->leave_at_once();
  end_session("paused: " + *why);
}

// ---- the directory ----
Announcing::Facts Peer::facts() const {
  const StagePeerStatus now = status();
  const Traffic traffic = traffic_.total(session_traffic());
  return {.session = life_->session,
          .stage = spec_->stage,
          .version = now.version,
          .rate = now.rate,
          .queue_seconds = now.queue_ms / 1000.0,
          .serving = life_->stage && life_->stage->serving() && !absence_.goes() && !state_.is(PeerPhase::kOver),
          .device = options_.device,
          .memory_bytes = process_bytes(*served_, *spec_, credits_, options_.program_bytes),  // as the line says
          .activation_codec = now.activation_codec,
          .gradient_codec = now.gradient_codec,
          .rtt = life_->transport->stats(authority()).rtt,
          .on_disk = checkpointing_.newest(spec_->stage),
          .sent = traffic.sent,
          .received = traffic.received};
}

void Peer::announce() {
  if (spec_) announcing_.announce(facts());
}

}  // namespace shoal
