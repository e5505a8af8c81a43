#include "runtime/peer/peer.h"

#include <algorithm>

#include "common/hash.h"
#include "common/log.h"
#include "runtime/stage_peer/stage_memory.h"

namespace shoal {

namespace {
constexpr Duration kTick = 100ms;
constexpr Duration kStepBeat = 100ms;     // at least, between two beats for inner steps
constexpr Duration kAbsenceTold = 2s;     // a shorter one is not worth a line
constexpr Duration kUndialledTold = 30s;  // between two lines that say the same
// A process that dies or begins while the keys are exchanged breaks off as one with another key does: who is refused is
// so again.
constexpr int kRefusalsMax = 3;
constexpr Duration kExchangePeriod = 20s;  // asking others for the records that they know
constexpr Duration kLookUpPeriod = 5s;     // asking the directory where the authority is

constexpr const char* kUndialledHint =
    "HINT: --advertise HOST:PORT names an address that others reach. Behind a firewall or NAT two TCP ports must be "
    "open, or forwarded under the "
    "same numbers: 4700 and 4701 with --listen 0.0.0.0:4700";

constexpr const char* kRefusedHint =
    "HINT: join without --stage to serve where a place is free, or ask who launched the run";

std::shared_ptr<const OuterRule> make_rule(RuleId id) {
  return id == RuleId::kAllreduce ? make_allreduce_rule() : make_diloco_rule();
}
}  // namespace

std::string_view name_of(PeerPhase phase) {
  switch (phase) {
    case PeerPhase::kConnecting:
      return "connecting";
    case PeerPhase::kJoining:
      return "joining";
    case PeerPhase::kFetching:
      return "fetching state";
    case PeerPhase::kServing:
      return "serving";
    case PeerPhase::kLeaving:
      return "leaving";
    case PeerPhase::kOver:
      return "over";
  }
  return "?";
}

Peer::Peer(PeerOptions options, PeerEnvironment environment, Owner& owner)
    : options_(std::move(options)),
      env_(std::move(environment)),
      owner_(owner),
      allreduce_(make_allreduce_rule()),
      diloco_(make_diloco_rule()) {}

Peer::~Peer() {
  *alive_ = false;
  if (session_alive_) *session_alive_ = false;
  env_.loop.cancel(timer_);
}

void Peer::start() {
  started_ = env_.loop.now();
  begin_session();
  tick();
}

void Peer::begin_session() {
  ++sessions_;
  session_alive_ = std::make_shared<bool>(true);
  session_ = Session::of(options_.key.id(), env_.rng.next());
  env_.events.set_session(session_);
  env_.events.write({.event = EventName::kStart});
  phase_ = PeerPhase::kConnecting;
  reason_ = "reaching the authority";
  announce_pace_ = {};
  transport_ = make_transport(env_.wire, env_.loop,
                              {options_.run, options_.key.id(), session_, PeerRole::kPeer, options_.addresses});
  transport_->set_listener(this);
  transport_->learn(as_peer(options_.run), options_.authority_addresses);
  transport_->dial(as_peer(options_.run));
}

void Peer::end_session(const std::string& why) {
  if (restarting_ || over_) return;
  if (leaving_) return finish("left; the session was over already: " + why, std::nullopt);
  if (options_.once)
    return finish("", make_error(ErrorCode::kStale, "session " + short_name(session_) + " is over: " + why));
  restarting_ = true;
  owner_.on_notice("session " + short_name(session_) + " is over (" + why + "): joining again");
  env_.events.write({.event = EventName::kFenced, .cause = why});
  if (stage_peer_) stage_peer_->stop();
  // The rest waits until no caller of ours stands on what is taken down.
  env_.loop.post([this, alive = alive_] {
    if (!*alive || over_) return;
    auto held = std::make_shared<std::vector<Held>>();
    auto executor = executor_;
    const bool had = stage_peer_ != nullptr && stage_peer_->serving() && executor;
    const Version version = had ? stage_peer_->version() : Version(0);
    const auto r = rule(state_rule_);
    const auto next = [this, alive, held] {
      if (!*alive || over_) return;
      if (!held->empty()) held_ = std::move(*held);
      *session_alive_ = false;
      fetcher_.reset();
      donor_.reset();
      membership_.reset();
      if (stage_peer_) {
        bytes_before_[2] += stage_peer_->status().fp32_bytes;
        bytes_before_[3] += stage_peer_->status().payload_bytes;
      }
      stage_peer_.reset();
      executor_.reset();
      inbound_chunks_.clear();
      answer_.reset();
      bytes_before_[0] += transport_->counters().sent_bytes;
      bytes_before_[1] += transport_->counters().received_bytes;
      transport_.reset();
      missed_.reset();
      loading_ = false;
      restarting_ = false;
      begin_session();
    };
    const auto prepared = had ? stage_peer_->prepared() : std::nullopt;
    if (!had || (version.value == 0 && !prepared)) return next();
    env_.device.run(
        DeviceTask::kState,
        [executor, held, version, r, prepared,
         own = prepared ? make_rule(static_cast<RuleId>(prepared->rule)) : nullptr, stage = spec_->stage] {
          const auto keep = [&](Bytes image, Version of) {
            const Digest digest = digest_of_image(image);
            held->push_back(Held{stage, of, digest, std::move(image)});
          };
          if (version.value > 0) keep(make_state_image(*executor, *r, version), version);
          if (!prepared) return;
          Arena& arena = executor->arena();
          const auto move = [&](ArenaRole from, ArenaRole to) {
            arena.pull(from);
            const auto source = arena.span(from);
            std::copy(source.begin(), source.end(), arena.span(to).begin());
            arena.push(to);
            arena.tag(to) = arena.tag(from);
          };
          move(ArenaRole::kCandidate, ArenaRole::kAnchor);
          for (std::size_t i = 0; i < own->shared_roles().size(); ++i)
            move(own->candidate_roles()[i], own->shared_roles()[i]);
          keep(make_state_image(*executor, *own, Version(prepared->base.value + 1)), Version(prepared->base.value + 1));
        },
        next);
  });
}

void Peer::on_link_up(const Remote& remote) {
  if (stage_peer_) stage_peer_->on_link_up(remote);
  if (!is_authority(remote.peer)) return;
  if (away_since_) owner_.on_notice("the run's first process is back");
  if (away_since_ && phase_ == PeerPhase::kServing) reason_.clear();
  away_since_.reset();
  ever_up_ = true;
  refusals_ = 0;
  if (!config_) {
    send_to_authority(ManifestQuery{});
  } else if (!membership_) {
    start_membership();
  } else {
    membership_->on_authority_up();
  }
  next_exchange_ = {};
  exchange_peers(env_.loop.now());
}

// So that what memory holds for a DHT that is away stays fresh.
void Peer::exchange_peers(TimePoint now) {
  if (env_.directory == nullptr || now < next_exchange_) return;
  next_exchange_ = now + kExchangePeriod;
  send_to_authority(PeersQuery{});
}

void Peer::on_link_down(const Remote& remote, const Error& cause) {
  std::erase_if(inbound_chunks_, [&](const auto& item) { return item.first.peer == remote.peer; });
  if (stage_peer_) stage_peer_->on_link_down(remote);
  if (fetcher_) fetcher_->on_donor_down(remote.peer);
  if (!is_authority(remote.peer)) return;
  undialled_since_.reset();
  reason_ = "no link to the authority: " + cause.message;
  if (ever_up_ && !away_since_) away_since_ = env_.loop.now();
  if (cause.code == ErrorCode::kStale) return end_session(cause.message);
  refusals_ = cause.code == ErrorCode::kRefused ? refusals_ + 1 : 0;
  if (refusals_ >= kRefusalsMax || cause.code == ErrorCode::kVersion || cause.code == ErrorCode::kForeign)
    return finish("refused", cause);
}

void Peer::tick() {
  timer_ = env_.loop.after(kTick, [this, alive = alive_] {
    if (*alive && !over_) tick();
  });
  const TimePoint now = env_.loop.now();
  if (transport_ && !transport_->remote(as_peer(options_.run)) && now >= next_dial_) {
    next_dial_ = now + 500ms;
    transport_->dial(as_peer(options_.run));
    look_up_authority();
  }
  if (!ever_up_ && now - started_ > options_.contact_time)
    return finish(
        "", make_error(ErrorCode::kUnreachable,
                       "no answer from the authority for " +
                           std::to_string(static_cast<int>(seconds_of(options_.contact_time))) + " s: " + reason_ +
                           ". HINT: is `shoal launch` running, and can this machine reach the ticket's addresses? "
                           "--patience SECONDS waits longer"));
  if (away_since_) check_absence(now);
  if (!over_ && !restarting_) check_missed(now);
  if (undialled_since_) check_reachable(now);
  if (over_) return;
  if (answer_ && spec_ && env_.directory != nullptr) {
    const StagePeerStatus status = stage_peer_ ? stage_peer_->status() : StagePeerStatus{};
    if (announce_pace_.due(now, status.version, status.rate)) announce();
  }
  if (transport_ && transport_->remote(as_peer(options_.run))) exchange_peers(now);
  if (now >= next_bytes_) write_bytes();
  if (leaving_) check_leaving();
}

// Hops between peers go on without the authority; what they need of it waits.
void Peer::check_absence(TimePoint now) {
  const std::string limit =
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(options_.absence_time).count()) + " s";
  if (now - *away_since_ > options_.absence_time)
    return finish("", make_error(ErrorCode::kUnreachable,
                                 "the run's first process was away for " + limit + ": giving up (" + reason_ +
                                     "). HINT: `shoal launch --resume` brings the run back, then join again; --wait "
                                     "SECONDS keeps the state longer"));
  if (now - *away_since_ < kAbsenceTold || absence_told_ >= *away_since_) return;
  absence_told_ = now;
  owner_.on_notice("the run's first process is away: the state is kept here, waiting up to " + limit + " for it (" +
                   reason_ + ")");
}

// A peer that nobody can dial is not admitted. One that holds a stage's state from an earlier session waits as long as
// for the authority.
void Peer::check_reachable(TimePoint now) {
  const Duration limit = ever_joined_ ? options_.absence_time : options_.contact_time;
  if (over_ || now - *undialled_since_ <= limit) return;
  finish("", make_error(ErrorCode::kUnreachable, reason_ + "; giving up after " +
                                                     std::to_string(static_cast<int>(seconds_of(limit))) + " s. " +
                                                     kUndialledHint));
}

void Peer::on_unreachable(const std::string& reason) {
  const TimePoint now = env_.loop.now();
  const std::string why = "the run's first process cannot dial this machine back: " + reason;
  const bool told = undialled_since_ && why == reason_ && now - undialled_told_ < kUndialledTold;
  if (!undialled_since_) undialled_since_ = now;
  reason_ = why;
  if (told) return;
  undialled_told_ = now;
  owner_.on_warning(why + "; not admitted, asking again. " + kUndialledHint);
}

// The addresses at hand do not answer: the run may have moved.
void Peer::look_up_authority() {
  const TimePoint now = env_.loop.now();
  if (env_.directory == nullptr || looking_up_ || now < next_look_up_ || now - started_ < kLookUpPeriod) return;
  looking_up_ = true;
  next_look_up_ = now + kLookUpPeriod;
  env_.directory->look_up_run(kLookUpPeriod, [this, alive = alive_](Result<RunRecord> record) {
    if (!*alive) return;
    looking_up_ = false;
    if (over_ || !transport_ || !record.ok() || record->addresses.empty()) return;
    options_.authority_addresses = record->addresses;
    transport_->learn(as_peer(options_.run), record->addresses);
  });
}

void Peer::on_manifest(const Manifest& manifest) {
  Signature signature{};
  const ByteView body{reinterpret_cast<const std::uint8_t*>(manifest.body.data()), manifest.body.size()};
  if (manifest.signature.size() != signature.size())
    return finish("", make_error(ErrorCode::kCorrupt, "the run's manifest carries no signature"));
  std::copy(manifest.signature.begin(), manifest.signature.end(), signature.begin());
  if (!verify(as_peer(options_.run), body, signature))
    return finish("",
                  make_error(ErrorCode::kCorrupt,
                             "the run's manifest is damaged or was not signed by the run's key: ask for a new ticket"));
  auto config = parse_manifest(manifest.body);
  if (!config.ok()) return finish("", config.error());
  config_ = std::make_shared<const RunConfig>(*std::move(config));
  if (const Status closed = close_to_strangers(); !closed.ok()) return finish("", closed.error());
  if (env_.factory_of) env_.factory = env_.factory_of(*config_);
  start_membership();
}

Status Peer::close_to_strangers() {
  if (config_->admission.mode != AdmissionMode::kKeys) return {};
  std::vector<PeerId> admitted = config_->admission.keys;
  admitted.push_back(as_peer(options_.run));
  return env_.wire.admit_only(admitted);
}

void Peer::start_membership() {
  phase_ = PeerPhase::kJoining;
  reason_ = "asking the authority for a stage";
  MembershipOptions options;
  options.run = options_.run;
  options.self = session_;
  options.request.wish = options_.wish;
  options.request.device = options_.device;
  options.request.addresses = options_.addresses;
  if (!held_.empty()) {
    options.request.held_stage = held_.front().stage;
    options.request.held_version = held_.front().version;
    options.request.held_digest = held_.front().digest;
  }
  membership_ = std::make_unique<Membership>(std::move(options), static_cast<MembershipPort&>(*this), env_.loop);
  membership_->start();
  membership_->on_authority_up();
}

Beat Peer::make_beat() {
  Beat beat;
  if (spec_) beat.stage = spec_->stage;
  beat.leaving = leaving_;
  if (!stage_peer_) return beat;
  const StagePeerStatus status = stage_peer_->status();
  beat.version = status.version;
  // Also while it leaves: it takes part in the round that secures its work, and gives its state to others.
  beat.serving = stage_peer_->serving() && (phase_ == PeerPhase::kServing || phase_ == PeerPhase::kLeaving);
  beat.inner_steps = status.inner_steps;
  beat.settled_targets = status.settled_targets;
  beat.accepted = status.ledger.accepted;
  beat.counted = status.ledger.counted;
  beat.undone = status.ledger.undone;
  beat.window_wait = status.ledger.window_wait;
  beat.entries = static_cast<std::uint32_t>(status.live);
  // A job that hangs is work that waits, however short its like took so far: without this a beat would be life.
  beat.queue_ms = status.device_busy ? std::max(1u, status.queue_ms) : status.queue_ms;
  beat.rate = status.rate;
  beat.progress = status.progress;
  return beat;
}

void Peer::on_version(Version version) {
  if (stage_peer_ && config_) state_rule_ = stage_peer_->state_rule();
  if (missed_ && missed_->version <= version) missed_.reset();
  if (donor_) donor_->forget();
  if (membership_ && (phase_ == PeerPhase::kServing || phase_ == PeerPhase::kLeaving)) membership_->beat_now();
}

// The authority opens rounds by what beats say is settled: said with every step, a round comes when it is due and not
// up to a beat's period later.
void Peer::on_inner_step() {
  const TimePoint now = env_.loop.now();
  if (!membership_ || phase_ != PeerPhase::kServing || now < next_step_beat_) return;
  next_step_beat_ = now + kStepBeat;
  membership_->beat_now();
}

void Peer::on_session_lost(const std::string& why) { end_session(why); }
void Peer::on_fenced(const std::string& reason) { end_session("fenced: " + reason); }
void Peer::on_refused(const std::string& reason) {
  finish("", make_error(ErrorCode::kRefused, "the authority refused us: " + reason + ". " + kRefusedHint));
}
void Peer::on_end(const std::string& reason) { finish("the run is over: " + reason, std::nullopt); }
void Peer::on_goodbye() { finish("left", std::nullopt); }

void Peer::on_status(const BeatAck& status) {
  run_status_ = status;
  if (stage_peer_) stage_peer_->note_run(status.run_targets, status.run_loss);
}

}  // namespace shoal
