// The sessions of a peer, from the first to its end, and what it tells of itself.
#include "runtime/peer/peer.h"

#include <algorithm>

#include "authority/patience.h"

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
  starving_told_ = waiting_told_ = false;
  const Session self = Session::of(options_.key.id(), env_.rng.next());
  events_.set_session(self);
  events_.write({.event = EventKind::kStart});
  state_.because("reaching the authority");
  announcing_.begin_session();
  checkpointing_.came_to_nothing();  // what the session before was at
  session_ = std::make_unique<PeerSession>(self, PeerSessionEnvironment{.owner = *this,
                                                                        .process = env_,
                                                                        .options = options_,
                                                                        .events = events_,
                                                                        .rules = rules_,
                                                                        .state = state_,
                                                                        .link = link_,
                                                                        .reachability = reachability_,
                                                                        .absence = absence_,
                                                                        .kept = kept_,
                                                                        .checkpointing = checkpointing_,
                                                                        .device = device_,
                                                                        .announcing = announcing_,
                                                                        .run = run_,
                                                                        .traffic = traffic_});
  session_->transport().dial(as_peer(options_.run));
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
  session_->stop(false);
  // The rest waits until no caller of ours stands on what is taken down. What those still say stands before its end.
  env_.loop.post(lifetime_.guard([this, why] {
    if (!state_.is(PeerPhase::kRestarting)) return;
    events_.write({.event = EventKind::kFenced, .cause = why});
    // Behind what a round still does to its arrays: it holds the executor.
    env_.aside.run(
        WorkKind::kAside, [] {}, lifetime_.guard([this] {
          if (state_.is(PeerPhase::kRestarting)) keep_state();
        }));
  }));
}

void Peer::keep_state() {
  auto source = session_->stage() ? session_->stage()->source() : std::nullopt;
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
  auto executor = session_->stage() ? session_->stage()->executor() : nullptr;
  session_.reset();
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
  if (run_.spec) announcing_.withdraw(run_.spec->stage);
  reachability_.link_down();
  if (absence_.session_down()) set_pause({});
}

void Peer::be_told_at(Whereabouts whereabouts, std::vector<std::string> mapped, const std::string& mapping) {
  options_.whereabouts = std::move(whereabouts);
  announcing_.be_told_at(options_.whereabouts);
  reachability_.told_elsewhere(std::move(mapped), mapping);
}

void Peer::finish(const std::string& reason, std::optional<Error> error) {
  if (state_.is(PeerPhase::kOver)) return;
  if (!error) error = absence_.cause();
  state_.move(PeerPhase::kOver, reason);
  env_.loop.cancel(timer_);
  write_bytes();
  if (session_) {
    session_->stop(true);
    session_->announce();  // the last one: not serving any more
  }
  if (run_.spec)
    env_.loop.after(kFarewell, lifetime_.guard([this, stage = run_.spec->stage] { announcing_.withdraw(stage); }));
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
  if (!session_->transport().remote(as_peer(options_.run)) && link_.take_dial(now)) {
    session_->transport().dial(as_peer(options_.run));
    look_up_authority();
  }
  check_patience(now);
  if (state_.is(PeerPhase::kOver)) return;
  session_->tell_others();
  if (now >= next_bytes_) write_bytes();
  if (absence_.goes()) session_->check_going();
}

void Peer::look_up_authority() {
  if (env_.directory == nullptr || !link_.take_look_up(env_.loop.now())) return;
  env_.directory->look_up_run(AuthorityLink::kLookUpPeriod, lifetime_.guard([this](const Result<RunRecord>& record) {
    link_.looked_up();
    if (state_.is(PeerPhase::kOver) || !record.ok()) return;
    if (record->ended)
      return session_ ? session_->on_end(*record->ended) : finish("the run is over: " + *record->ended, {});
    if (!session_) return;  // paused meanwhile
    if (!record->whereabouts.dialable()) return;
    options_.authority = record->whereabouts;
    session_->transport().hear(as_peer(options_.run), record->whereabouts);
  }));
}

// A job that was under way when the session ended, and for longer than the authority waits for one.
Duration Peer::device_hung() const {
  if (!run_.config || !over_at_ || device_.busy_since() > *over_at_) return Duration(0);
  return device_.busy_for() > patience_of(device_, *run_.config) ? device_.busy_for() : Duration(0);
}

void Peer::tell_of_processor() {
  if (!options_.on_processor || !run_.config || !session_ || !device_.busy()) return;
  const auto text = [](Duration time) { return std::to_string(static_cast<int>(seconds_of(time))) + " s"; };
  const Duration worked = device_.busy_for(), starved = device_.starved_for();
  if (device_hung() > Duration(0) && state_.is(PeerPhase::kRestarting) && !std::exchange(waiting_told_, true)) {
    state_.because("waiting for a job of the session before");
    owner_.on_warning("a job of the session before has run for " + text(worked) + " and does not end: this process " +
                      "waits for it, then joins again. HINT: does this machine swap (free, vmstat)? More "
                      "[pipeline] stages make each one smaller");
  }
  if (worked + starved <= patience_of(device_, *run_.config) || worked > starved || std::exchange(starving_told_, true))
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
  if (session_->stage()) session_->stage()->tick(now);
}

// ---- figures and events ----
PeerReport Peer::report() const {
  PeerReport report;
  report.phase = absence_.goes() && !state_.is(PeerPhase::kOver) ? PeerPhase::kLeaving : state_.phase();
  report.reason = state_.reason();
  if (run_.spec) report.stage = run_.spec->stage;
  report.status = status();
  const Membership* const membership = session_ ? session_->membership() : nullptr;
  std::optional<StageId> empty;
  if (membership) empty = membership->empty_stage();
  if (report.status.parked > 0) empty = run_.spec->route().next;
  if (report.reason.empty() && empty && state_.is(PeerPhase::kServing))
    report.reason = "waiting: stage " + std::to_string(empty->value) + " has no peer";
  if (report.reason.empty() && report.status.stranded)
    report.reason = "waiting: this machine reaches no peer of stage " + std::to_string(run_.spec->route().next->value);
  if (session_)
    report.figures = session_->figures();
  else
    run_.add_to(report.figures, options_, traffic_.total({}));
  if (session_ && session_->stage()) {
    const auto [bytes, total] = session_->stage()->fetched();
    report.fetched_bytes = bytes;
    report.fetch_total = total;
  }
  report.run = run_.status;
  report.config = run_.config;
  if (membership && membership->list()) report.list = &*membership->list();
  report.sessions = sessions_;
  if (run_.spec) report.on_disk = checkpointing_.newest(run_.spec->stage);
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
  if (added.relayed > 0) bytes.relayed = added.relayed;
  if (added.rounds > 0) bytes.rounds.sent = added.rounds;
  if (added.round_us > 0) bytes.rounds.device_us = added.round_us;
  if (run_.config && run_.config->keeps_bases()) {
    bytes.bases = {added.deltas, added.keys};
  }
  events_.write(bytes_event(std::move(bytes), longest));
}

// ---- its owner's wishes ----
void Peer::leave() {
  if (state_.is(PeerPhase::kOver)) return;
  if (state_.is(PeerPhase::kRestarting)) return finish("left; the session was over already", std::nullopt);
  if (!session_) return finish("left at once", std::nullopt);  // paused
  session_->leave();
}

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
  const bool counts = !restarting && session_ && session_->stage() && session_->stage()->serving();
  if (!absence_.begin_pause(env_.loop.now(), *why, counts)) {
    if (state_.is(PeerPhase::kPaused)) state_.because(*why);
    return;
  }
  if (counts) return session_->begin_going("pausing (" + *why + "): no new microbatches, ", "");
  if (restarting) return absence_.note_last_holder(session_->holds_alone());
  if (session_->membership()) session_->membership()->leave_at_once();
  end_session("paused: " + *why);
}

}  // namespace shoal
