// How a peer goes, and what it tells of itself.
#include "common/log.h"
#include "runtime/peer/peer.h"

namespace shoal {

namespace {
constexpr Duration kLeaveTime = 30s;
constexpr Duration kBytesPeriod = 1s;
constexpr Duration kFarewell = 100ms;  // for the last record to reach the DHT, before nothing keeps it alive any more
}  // namespace

void Peer::leave() {
  if (over_) return;
  if (restarting_) return finish("left; the session was over already", std::nullopt);
  if (leaving_ || !stage_peer_ || !membership_) {
    if (membership_) membership_->leave_at_once();
    return finish("left at once", std::nullopt);
  }
  leaving_ = true;
  leave_by_ = env_.loop.now() + kLeaveTime;
  stage_peer_->leave();
  membership_->beat_now();
  announce();
  owner_.on_notice("leaving: no new microbatches, " + stage_peer_->waiting_for() + " to settle (again to go at once)");
  check_leaving();
}

void Peer::check_leaving() {
  if (over_ || restarting_ || !membership_ || !stage_peer_) return;
  const TimePoint now = env_.loop.now();
  if (transport_->remote(as_peer(options_.run))) reason_ = leaving_reason();
  if (!membership_->last_holder()) {
    told_last_ = false;
    return ask_to_go(now);
  }
  leave_by_ = now + kLeaveTime;  // once another holds the state, what no round secured gets its round
  if (std::exchange(told_last_, true)) return;
  owner_.on_notice("this is the last holder of stage " + std::to_string(spec_->stage.value) +
                   "'s state: it goes with us; again to leave all the same");
}

void Peer::ask_to_go(TimePoint now) {
  if (!asked_to_go_ && (stage_peer_->quiet() || now >= leave_by_ - kLeaveTime / 3)) {
    asked_to_go_ = true;
    phase_ = PeerPhase::kLeaving;
    membership_->leave(stage_peer_->status().settled_targets > 0);
  }
  if (now < leave_by_) return;
  membership_->leave_at_once();
  finish("left after waiting " + std::to_string(static_cast<int>(seconds_of(kLeaveTime))) +
             " s; what no round secured is lost",
         std::nullopt);
}

// What is waited for.
std::string Peer::leaving_reason() const {
  if (membership_->last_holder()) return "leaving: waiting for another peer to take the stage's state";
  if (!asked_to_go_) return "leaving: waiting for " + stage_peer_->waiting_for();
  const std::uint64_t settled = stage_peer_->status().settled_targets;
  if (settled == 0) return "leaving: waiting for the authority's goodbye";
  return "leaving: waiting for a round that secures " + std::to_string(settled) + " targets";
}

void Peer::announce() {
  if (env_.directory == nullptr || !spec_) return;
  PeerRecord record;
  record.run = options_.run;
  record.peer = options_.key.id();
  record.session = session_;
  record.stage = spec_->stage;
  record.addresses = options_.addresses;
  const StagePeerStatus status = stage_peer_ ? stage_peer_->status() : StagePeerStatus{};
  announce_pace_.told(env_.loop.now(), status.version, status.rate);
  record.rate = status.rate;
  record.queue_seconds = status.queue_ms / 1000.0;
  record.version = status.version;
  record.serving = stage_peer_ && stage_peer_->serving() && !leaving_ && !over_;
  record.sequence = sequence_ = next_sequence(sequence_, env_.loop.wall());
  record.expires = env_.loop.wall() + 60s;
  if (auto text = pack_record(record, options_.key); text.ok())
    env_.directory->announce(*std::move(text), stage_key(options_.run, spec_->stage));
  else
    log_warning("no record for the directory: ", text.error().message);
}

void Peer::finish(const std::string& reason, std::optional<Error> error) {
  if (over_) return;
  over_ = true;
  phase_ = PeerPhase::kOver;
  reason_ = reason;
  write_bytes();
  env_.events.write({.event = EventName::kEnd, .cause = error ? error->message : reason});
  if (stage_peer_) stage_peer_->stop();
  if (env_.directory != nullptr && spec_) {
    announce();  // the last one: not serving any more
    env_.loop.after(kFarewell, [this, alive = alive_, key = stage_key(options_.run, spec_->stage)] {
      if (*alive) env_.directory->withdraw(key);
    });
  }
  env_.loop.post([this, alive = alive_, reason, error = std::move(error)] {
    if (*alive) owner_.on_finished(reason, error);
  });
}

PeerReport Peer::report() const {
  PeerReport report;
  report.phase = phase_;
  report.reason = reason_;
  if (leaving_ && !over_) report.phase = PeerPhase::kLeaving;
  if (spec_) report.stage = spec_->stage;
  if (stage_peer_) report.status = stage_peer_->status();
  if (report.reason.empty() && report.status.parked > 0)
    report.reason = "waiting: stage " + std::to_string(spec_->stage.value + 1) + " has no peer";
  report.sent_bytes = bytes_before_[0] + (transport_ ? transport_->counters().sent_bytes : 0);
  report.received_bytes = bytes_before_[1] + (transport_ ? transport_->counters().received_bytes : 0);
  report.fp32_bytes = bytes_before_[2] + report.status.fp32_bytes;
  report.payload_bytes = bytes_before_[3] + report.status.payload_bytes;
  report.fetched_bytes = fetched_;
  report.fetch_total = fetch_total_;
  report.run_targets = run_status_.run_targets;
  report.run_loss = run_status_.run_loss;
  report.run_step = run_status_.run_step;
  report.sessions = sessions_;
  return report;
}

// Every second what was added since: a killed process leaves out a second at most.
void Peer::write_bytes() {
  next_bytes_ = env_.loop.now() + kBytesPeriod;
  const PeerReport now = report();
  const std::array<std::uint64_t, 4> counts = {now.sent_bytes, now.received_bytes, now.fp32_bytes, now.payload_bytes};
  const std::array<std::uint64_t, 4> before = std::exchange(bytes_written_, counts);
  env_.events.write({.event = EventName::kBytes,
                     .sent = counts[0] - before[0],
                     .received = counts[1] - before[1],
                     .fp32 = counts[2] - before[2],
                     .payload = counts[3] - before[3]});
}

}  // namespace shoal
