#include "runtime/peer/peer_session.h"

#include "common/log.h"
#include "runtime/config/signed_manifest.h"
#include "runtime/peer/peer.h"
#include "transport/one_taker.h"
#include "transport/signed_list.h"

namespace shoal {

namespace {
constexpr const char* kAsking = "asking the authority for a stage";
constexpr const char* kMaking = "making the stage on the device";
constexpr const char* kRefusedHint =
    "HINT: join without --stage to serve where a place is free, or ask who launched the run";

// A run with keys: its keys and the launching process alone may dial us.
Status close_to_strangers(Wire& wire, const RunConfig& config, const PeerId& authority) {
  if (config.admission.mode != AdmissionMode::kKeys) return {};
  std::vector<PeerId> admitted = config.admission.keys;
  admitted.push_back(authority);
  return wire.admit_only(admitted);
}
}  // namespace

PeerSession::PeerSession(Session self, PeerSessionEnvironment environment)
    : self_(self),
      env_(environment),
      authority_(as_peer(env_.options.run)),
      transport_(env_.process.wire, env_.process.loop,
                 {.run = env_.options.run,
                  .self = env_.options.key.id(),
                  .session = self,
                  .role = PeerRole::kPeer,
                  .whereabouts = env_.options.whereabouts}) {
  transport_.set_listener(this);
  transport_.hear(authority_, env_.options.authority);
}

// ---- from its owner ----
void PeerSession::tell_others() {
  if (membership_ && membership_->stage() && env_.run.spec) env_.announcing.announce_if_due(facts());
  if (!transport_.remote(authority_)) return;
  if (env_.announcing.take_exchange()) send_to_authority(PeersQuery{});
  // It pays with each, so that it is dialled too where a port is forwarded, and where it tells another host.
  if (env_.reachability.take_query(env_.process.loop.now(), env_.options.whereabouts))
    send(authority_, ReachQuery{env_.options.whereabouts}, {Bytes::copy_of(std::string(kDialPaymentBytes, '\0'))});
}

void PeerSession::stop(bool goodbye) {
  lifetime_.end();
  if (stage_peer() != nullptr) stage_peer()->stop();
  if (membership_) goodbye ? membership_->leave_at_once() : membership_->stop();
}

// ---- the link to the authority ----
void PeerSession::on_link_up(const Remote& remote) {
  if (env_.state.is(PeerPhase::kOver) && env_.run.end) return send(remote.peer, *env_.run.end);
  if (stage_peer() != nullptr) stage_peer()->on_link_up(remote);
  if (remote.peer != authority_) return;
  if (env_.link.up()) env_.owner.on_notice("the run's first process is back");
  // What was said of the lost link is true no more.
  if (env_.state.is(PeerPhase::kServing) || env_.state.is(PeerPhase::kFetching)) env_.state.because("");
  if (env_.state.is(PeerPhase::kJoining)) env_.state.because(membership_ && membership_->stage() ? kMaking : kAsking);
  if (!env_.state.in_session()) return;
  if (!env_.run.config) {
    send_to_authority(ManifestQuery{});
  } else if (!membership_) {
    start_membership();
  } else {
    membership_->on_authority_up();
  }
  env_.announcing.exchange_soon();
  if (env_.announcing.take_exchange()) send_to_authority(PeersQuery{});
}

void PeerSession::on_link_down(const Remote& remote, const Error& cause) {
  if (stage_) stage_->on_link_down(remote);
  if (remote.peer != authority_) return;
  env_.reachability.link_down();
  env_.link.down(env_.process.loop.now());
  if (!env_.state.in_session()) return;
  env_.state.because("no link to launch: " + cause.message);
  if (cause.code == ErrorCode::kStale) return env_.owner.end_session(cause.message);
  if (env_.link.refused_for_good(cause.code)) env_.owner.finish("refused", cause);
}

// ---- the manifest ----
void PeerSession::on_manifest(const Manifest& manifest) {
  auto config = open_manifest(manifest, env_.options.run);
  if (!config.ok()) return env_.owner.finish("", config.error());
  env_.run.served = env_.run.config = std::make_shared<const RunConfig>(*std::move(config));
  const Status closed = close_to_strangers(env_.process.wire, *env_.run.config, authority_);
  if (!closed.ok()) return env_.owner.finish("", closed.error());
  env_.checkpointing.set_policy(from_seconds(env_.run.config->checkpoint.every_s), env_.run.config->checkpoint.keep);
  start_membership();
}

// ---- admission ----
void PeerSession::start_membership() {
  env_.state.move(PeerPhase::kJoining, kAsking);
  MembershipOptions options{.run = env_.options.run, .self = self_, .request = {}};
  options.request.wish = env_.absence.wish() ? env_.absence.wish() : env_.options.wish;
  options.request.device = env_.options.device;
  options.request.name = env_.options.name;
  options.request.whereabouts = env_.options.whereabouts;
  options.request.held_stage = env_.kept.stage();
  if (env_.kept.stage()) options.request.held = env_.checkpointing.held(*env_.kept.stage(), env_.kept);
  membership_ =
      std::make_unique<Membership>(std::move(options), static_cast<MembershipPort&>(*this), env_.process.loop);
  membership_->start();
  membership_->on_authority_up();
}

void PeerSession::on_unreachable(const std::string& reason) {
  const auto line = env_.reachability.kept_out(reason);
  env_.state.because(env_.reachability.why());
  if (line) env_.owner.on_warning(*line);
}

void PeerSession::on_later(const std::string& reason) {
  const auto line = env_.reachability.told_to_wait(reason);
  env_.state.because(reason);
  if (line) env_.owner.on_warning(*line);
}

void PeerSession::on_refused(const std::string& reason) {
  if (env_.absence.refused()) return env_.owner.end_session("the authority has no room there: " + reason);
  env_.owner.finish("", make_error(ErrorCode::kRefused, "the authority refused us: " + reason + ". " + kRefusedHint));
}

void PeerSession::on_joined(const JoinAnswer& answer) {
  env_.absence.joined(answer.stage, env_.run.spec ? std::optional(env_.run.spec->stage) : std::nullopt);
  env_.reachability.admitted();
  env_.owner.on_notice("stage " + std::to_string(answer.stage.value) + " of " +
                       std::to_string(env_.run.config->pipeline.stages) + ": " + answer.reason);
  if (env_.options.wish && *env_.options.wish != answer.stage)
    env_.owner.on_warning(
        "--stage " + std::to_string(env_.options.wish->value) + " is overridden: stage " +
        std::to_string(answer.stage.value) + " is given, " + answer.reason +
        ". HINT: a wish counts while every other stage has a member or the wished one has none, and where "
        "nobody else holds the state that this machine has; join again when that is so");
  build_stage(answer);
}

// ---- the stage ----
void PeerSession::build_stage(const JoinAnswer& answer) {
  const StageId stage = answer.stage;
  auto spec = env_.run.spec_of(stage);
  if (!spec)
    return env_.owner.finish(
        "", make_error(ErrorCode::kMalformed, "the manifest's split has no stage " + std::to_string(stage.value)));
  if (env_.run.spec && env_.run.spec->stage != stage)
    env_.announcing.withdraw(env_.run.spec->stage);  // that of the session before
  env_.run.spec = std::move(spec);
  env_.events.set_stage(stage);
  announce();
  const auto room = room_for_stage(*env_.run.spec);
  if (!room.ok()) return on_stage_failed(room.error());
  env_.run.serve_in(*room);
  stage_ = std::make_unique<StagePlace>(
      StagePlaceEnvironment{env_, self_, answer, transport_, *membership_, lifetime_, [this] { announce(); },
                            [this](Error error) { on_stage_failed(std::move(error)); }});
}

// A peer that served well where it came from goes back there; one that serves leaves in order.
void PeerSession::on_stage_failed(Error error) {
  if (stage_ && stage_->serving()) {
    if (!env_.absence.failed(error)) return;
    env_.owner.on_warning(error.message);
    return !env_.absence.goes() || env_.absence.is(AbsencePhase::kMoving) ? leave() : void();
  }
  if (!env_.absence.came_from()) return env_.owner.finish("", std::move(error));
  env_.absence.cannot_serve(env_.run.spec->stage);
  const StageId back = env_.absence.go_back();
  env_.owner.on_warning("this machine cannot serve stage " + std::to_string(env_.run.spec->stage.value) +
                        " and goes back to stage " + std::to_string(back.value) + ": " + error.message);
  env_.owner.end_session("it goes back to stage " + std::to_string(back.value));
}

Result<Room> PeerSession::room_for_stage(const StageSpec& spec) {
  const auto& memory_free = env_.process.memory_free;
  SHOAL_ASSIGN(Room room, env_.run.room_for_stage(spec, env_.options, memory_free ? memory_free() : std::nullopt));
  if (!room.text.empty()) env_.owner.on_notice(room.text);  // before a byte of its state comes
  return room;
}

void PeerSession::on_members(const MemberList& list) {
  std::vector<PeerId> favoured = peers_of(list);
  favoured.push_back(authority_);
  transport_.favour(favoured);
  for (const StageMembers& stage : list.stages)
    for (const Member& member : stage.members)
      if (member.session == self_) {
        if (const auto homes = env_.reachability.on_others(list, member)) env_.process.wire.be_called_at(*homes);
        if (const auto line = env_.reachability.on_list(member.whereabouts)) env_.owner.on_notice(*line);
      }
  if (stage_) stage_->on_members(list);
}

// ---- messages ----
void PeerSession::on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) {
  if (!env_.state.in_session()) {
    if (transfer != 0) transport_.refuse(remote.peer, transfer);
    return;
  }
  const bool may_have_frames = std::visit(
      [](const auto& m) { return AnyOf<decltype(m), Chunk, Extend, Forward, Gradient, RoundPart>; }, message);
  if (transfer != 0 && !may_have_frames) return transport_.refuse(remote.peer, transfer);
  const auto to_stage = [&] {
    if (stage_)
      stage_->on_message(remote, message, transfer, frame_bytes);
    else if (transfer != 0)
      transport_.refuse(remote.peer, transfer);
  };
  const auto note = [&](const Status& taken) {
    if (taken.ok()) return;
    if (const auto times = said_.due(std::string(name_of(taken.code())), env_.process.loop.now()))
      log_warning("from the authority: ", taken.error().message, LogThrottle::text_of(*times));
  };
  std::visit(OneTaker{
                 [&](const Manifest& m) {
                   if (remote.peer == authority_ && !env_.run.config) on_manifest(m);
                 },
                 [&](const PeersQuery&) {
                   if (auto records = env_.announcing.known()) send(remote.peer, Peers{*std::move(records)});
                 },
                 [&](const Peers& m) { env_.announcing.offer(m.records); },
                 [&](const End& m) { on_end_message(remote, m); },
                 [&](const ReachAnswer& m) {
                   if (remote.peer != authority_) return;
                   if (const auto line = env_.reachability.answered(env_.process.loop.now(), m))
                     env_.owner.on_warning(*line);
                 },
                 // The stage's peer hears by them, too, that the authority is there.
                 [&](const AnyOf<JoinAnswer, Members, MembersChange, BeatAck, Fenced, Goodbye> auto& m) {
                   const bool takes = membership_ && remote.peer == authority_;
                   if (takes) note(membership_->on_message(m));
                   if (!takes || (!AnyOf<decltype(m), Fenced> && env_.state.in_session())) to_stage();
                 },
                 [&](const AnyOf<StateQuery, ChunkQuery, StateOffer, Chunk, Extend, Forward, Take, Busy, Have, Gone,
                                 NeedKeyFrame, Progress, Gradient, Release, Renew, Waiting, Hint, Commit, CommitAck,
                                 Step, RoundOpen, RoundPart, RoundCommit, RoundAbandon, Knock> auto&) { to_stage(); },
                 // What the authority takes, and what a link keeps to itself.
                 [](const AnyOf<JoinRequest, Beat, Leave, MembersQuery, RoundReport, ManifestQuery, Extended,
                                ReachQuery> auto&) {},
                 [](const AnyOf<Hello, Ping, Pong, ByteCredit, DropTransfer> auto&) {},
             },
             message);
}

// The authority proved its key when the link came up; of anybody else the signature does.
void PeerSession::on_end_message(const Remote& remote, const End& end) {
  const bool is_signed = check_end(end, env_.options.run).ok();
  if (!is_signed && remote.peer != authority_) {
    log_debug("from ", short_name(remote.peer), ": an end of the run that the run's key did not sign");
    return;
  }
  if (is_signed) env_.run.end = end;
  if (membership_) (void)membership_->on_message(end);
  if (!env_.state.is(PeerPhase::kOver)) on_end(end.reason);  // it asked for no place yet
}

void PeerSession::on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) {
  if (!env_.state.in_session()) return;
  if (stage_) stage_->on_frames(remote, transfer, frames);
}

void PeerSession::send_to_authority(Message message) { send(authority_, std::move(message)); }
void PeerSession::send(const PeerId& to, Message message, std::vector<Bytes> frames) {
  if (const auto sent = transport_.send(to, std::move(message), std::move(frames)); !sent.ok())
    log_debug("not sent: ", sent.error().message);
}

// ---- what others decide about the session ----
void PeerSession::on_fenced(const std::string& reason) { env_.owner.end_session("fenced: " + reason); }
void PeerSession::on_end(const std::string& reason) {
  if (env_.state.is(PeerPhase::kOver)) return;
  send_to_authority(Goodbye{});  // it need not wait for us
  if (env_.run.end && membership_ && membership_->list())
    for (const StageMembers& stage : membership_->list()->stages)
      for (const Member& member : stage.members)
        if (transport_.remote(member.peer)) send(member.peer, *env_.run.end);
  if (env_.reachability.ever_admitted()) return env_.owner.finish("the run is over: " + reason, std::nullopt);
  env_.owner.finish("", make_error(ErrorCode::kGone,
                                   "never admitted, and the run is over: " + reason +
                                       (env_.reachability.why().empty() ? "" : " (" + env_.reachability.why() + ")")));
}
// ---- beats ----
Beat PeerSession::make_beat() {
  Beat beat;
  if (env_.run.spec) beat.stage = env_.run.spec->stage;
  beat.leaving = env_.absence.goes();
  if (env_.run.spec && !(stage_ && stage_->serving()))
    beat.held = env_.checkpointing.held(env_.run.spec->stage, env_.kept);
  if (env_.run.spec) beat.on_disk = env_.checkpointing.newest(env_.run.spec->stage);
  if (stage_peer() == nullptr) return beat;
  stage_->add_to(beat);
  beat.movable = !env_.options.wish && !env_.options.once && beat.serving && !beat.leaving;
  return beat;
}

// ---- look ----
StagePeerStatus PeerSession::status() const {
  return stage_peer() != nullptr ? stage_peer()->status() : StagePeerStatus{};
}

Traffic PeerSession::traffic() const {
  const TransportCounters counters = transport_.counters();
  const PeerFigures session = stage_peer() != nullptr ? stage_peer()->figures() : PeerFigures{};
  const StagePeerStatus now = status();
  return {.sent = counters.sent_bytes,
          .received = counters.received_bytes,
          .relayed = counters.relayed_bytes,
          .fp32 = session.fp32_bytes,
          .payload = session.payload_bytes,
          .deltas = now.bases.deltas,
          .keys = now.bases.keys,
          .rounds = now.round_bytes,
          .round_us = static_cast<std::uint64_t>(now.rounds_time / 1us)};
}

PeerFigures PeerSession::figures() const {
  PeerFigures figures = stage_peer() != nullptr ? stage_peer()->figures() : PeerFigures{};
  figures.rtt_ms = 1000 * seconds_of(transport_.stats(authority_).rtt);
  env_.run.add_to(figures, env_.options, env_.traffic.total(traffic()));
  return figures;
}

std::optional<std::pair<StageId, Version>> PeerSession::held_state() const {
  if (const auto kept = env_.kept.newest()) return kept;
  const StagePeer* const here = stage_peer();
  if (here != nullptr && here->version() > Version(0)) return std::pair{env_.run.spec->stage, here->version()};
  return std::nullopt;
}

bool PeerSession::holds_alone() const { return membership_ && membership_->last_holder() && held_state().has_value(); }

// ---- the directory ----
Announcing::Facts PeerSession::facts() const {
  return {.session = self_,
          .stage = env_.run.spec->stage,
          .version = status().version,
          .serving = stage_ && stage_->serving() && !env_.absence.goes() && !env_.state.is(PeerPhase::kOver),
          .on_disk = env_.checkpointing.newest(env_.run.spec->stage),
          .figures = figures()};
}

void PeerSession::announce() {
  if (env_.run.spec) env_.announcing.announce(facts());
}

}  // namespace shoal
