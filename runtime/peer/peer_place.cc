// From a ticket's addresses to a place in the run: the link to the authority, the manifest, the admission; which part
// takes a message; and how it leaves that place.
#include <algorithm>

#include "common/log.h"
#include "runtime/config/signed_manifest.h"
#include "runtime/peer/peer.h"
#include "transport/one_taker.h"

namespace shoal {

namespace {
constexpr const char* kAsking = "asking the authority for a stage";
constexpr const char* kMaking = "making the stage on the device";
constexpr const char* kRefusedHint =
    "HINT: join without --stage to serve where a place is free, or ask who launched the run";
}  // namespace

// ---- the link to the authority ----
void Peer::on_link_up(const Remote& remote) {
  if (state_.is(PeerPhase::kOver) && end_) return send(remote.peer, *end_);
  if (life_->stage) life_->stage->on_link_up(remote);
  if (remote.peer != authority()) return;
  if (link_.up()) owner_.on_notice("the run's first process is back");
  // What was said of the lost link is true no more.
  if (state_.is(PeerPhase::kServing) || state_.is(PeerPhase::kFetching)) state_.because("");
  if (state_.is(PeerPhase::kJoining)) state_.because(life_->answer ? kMaking : kAsking);
  if (!state_.in_session()) return;
  if (!config_) {
    send_to_authority(ManifestQuery{});
  } else if (!life_->membership) {
    start_membership();
  } else {
    life_->membership->on_authority_up();
  }
  announcing_.exchange_soon();
  exchange_peers();
}

void Peer::on_link_down(const Remote& remote, const Error& cause) {
  if (life_->stage) life_->stage->on_link_down(remote);
  if (remote.peer != authority()) return;
  reachability_.link_down();
  link_.down(env_.loop.now());
  if (!state_.in_session()) return;
  state_.because("no link to launch: " + cause.message);
  if (cause.code == ErrorCode::kStale) return end_session(cause.message);
  if (link_.refused_for_good(cause.code)) finish("refused", cause);
}

void Peer::look_up_authority() {
  if (env_.directory == nullptr || !link_.take_look_up(env_.loop.now())) return;
  env_.directory->look_up_run(AuthorityLink::kLookUpPeriod, lifetime_.guard([this](const Result<RunRecord>& record) {
    link_.looked_up();
    if (state_.is(PeerPhase::kOver) || !record.ok()) return;
    if (record->ended) return life_ ? on_end(*record->ended) : finish("the run is over: " + *record->ended, {});
    if (!life_) return;  // paused meanwhile
    if (!record->whereabouts.dialable()) return;
    options_.authority = record->whereabouts;
    life_->transport->learn(authority(), record->whereabouts);
  }));
}

void Peer::exchange_peers() {
  if (announcing_.take_exchange()) send_to_authority(PeersQuery{});
}

// ---- the manifest ----
void Peer::on_manifest(const Manifest& manifest) {
  auto config = open_manifest(manifest, options_.run);
  if (!config.ok()) return finish("", config.error());
  served_ = config_ = std::make_shared<const RunConfig>(*std::move(config));
  if (const Status closed = close_to_strangers(); !closed.ok()) return finish("", closed.error());
  checkpointing_.set_policy(from_seconds(config_->checkpoint.every_s), config_->checkpoint.keep);
  start_membership();
}

Status Peer::close_to_strangers() {
  if (config_->admission.mode != AdmissionMode::kKeys) return {};
  std::vector<PeerId> admitted = config_->admission.keys;
  admitted.push_back(authority());
  return env_.wire.admit_only(admitted);
}

// ---- admission ----
void Peer::start_membership() {
  state_.move(PeerPhase::kJoining, kAsking);
  MembershipOptions options{.run = options_.run, .self = life_->session, .request = {}};
  options.request.wish = absence_.wish() ? absence_.wish() : options_.wish;
  options.request.device = options_.device;
  options.request.name = options_.name;
  options.request.whereabouts = options_.whereabouts;
  options.request.held_stage = kept_.stage();
  if (kept_.stage()) options.request.held = checkpointing_.held(*kept_.stage(), kept_);
  life_->membership = std::make_unique<Membership>(std::move(options), static_cast<MembershipPort&>(*this), env_.loop);
  life_->membership->start();
  life_->membership->on_authority_up();
}

void Peer::on_unreachable(const std::string& reason) {
  const auto line = reachability_.undialled(env_.loop.now(), reason);
  state_.because(reachability_.why());
  if (line) owner_.on_warning(*line);
}

void Peer::on_later(const std::string& reason) {
  const auto line = reachability_.told_to_wait(reason);
  state_.because(reason);
  if (line) owner_.on_warning(*line);
}

void Peer::on_refused(const std::string& reason) {
  if (absence_.refused()) return end_session("the authority has no room there: " + reason);
  finish("", make_error(ErrorCode::kRefused, "the authority refused us: " + reason + ". " + kRefusedHint));
}

void Peer::on_joined(const JoinAnswer& answer) {
  life_->answer = answer;
  absence_.joined(answer.stage, spec_ ? std::optional(spec_->stage) : std::nullopt);
  reachability_.admitted();
  owner_.on_notice("stage " + std::to_string(answer.stage.value) + " of " + std::to_string(config_->pipeline.stages) +
                   ": " + answer.reason);
  if (options_.wish && *options_.wish != answer.stage)
    owner_.on_warning(
        "--stage " + std::to_string(options_.wish->value) + " is overridden: stage " +
        std::to_string(answer.stage.value) + " is given, " + answer.reason +
        ". HINT: a wish counts while every other stage has a member or the wished one has none, and where "
        "nobody else holds the state that this machine has; join again when that is so");
  build_stage(answer.stage);
}

// ---- the stage ----
void Peer::build_stage(StageId stage) {
  auto specs = split_model(config_->model_spec(), config_->pipeline.stages, config_->pipeline.layers_per_stage);
  if (!specs.ok() || stage.value >= specs->size())
    return finish(
        "", make_error(ErrorCode::kMalformed, "the manifest's split has no stage " + std::to_string(stage.value)));
  if (spec_ && spec_->stage != stage) announcing_.withdraw(spec_->stage);  // that of the session before
  spec_ = (*specs)[stage.value];
  events_.set_stage(stage);
  announce();
  const auto room = room_for_stage(*spec_);
  if (!room.ok()) return on_stage_failed(room.error());
  credits_ = room->credits;
  served_ = std::make_shared<const RunConfig>(with_recompute(*config_, room->recompute));
  if (env_.factory_of) env_.factory = env_.factory_of(*served_);
  life_->stage = std::make_unique<StagePlace>(StagePlaceOptions{.config = served_,
                                                                .spec = *spec_,
                                                                .self = life_->session,
                                                                .authority = authority(),
                                                                .credits = credits_,
                                                                .path_key = life_->answer->path_key,
                                                                .from_seed = life_->answer->initialise,
                                                                .deltas = env_.deltas,
                                                                .base_folder = options_.base_folder},
                                              StagePlaceEnvironment{.loop = env_.loop,
                                                                    .transport = *life_->transport,
                                                                    .membership = *life_->membership,
                                                                    .device = device_,
                                                                    .aside = env_.aside,
                                                                    .events = events_,
                                                                    .factory = env_.factory,
                                                                    .rules = rules_,
                                                                    .state = state_,
                                                                    .kept = kept_,
                                                                    .checkpointing = checkpointing_,
                                                                    .session = life_->lifetime},
                                              static_cast<StagePlaceOwner&>(*this));
  life_->stage->build();
}

// A peer that served well where it came from goes back there; one that serves leaves in order.
void Peer::on_stage_failed(Error error) {
  if (life_->stage && life_->stage->serving()) {
    if (!absence_.failed(error)) return;
    owner_.on_warning(error.message);
    return !absence_.goes() || absence_.is(AbsencePhase::kMoving) ? leave() : void();
  }
  if (!absence_.came_from()) return finish("", std::move(error));
  absence_.cannot_serve(spec_->stage);
  const StageId back = absence_.go_back();
  owner_.on_warning("this machine cannot serve stage " + std::to_string(spec_->stage.value) +
                    " and goes back to stage " + std::to_string(back.value) + ": " + error.message);
  end_session("it goes back to stage " + std::to_string(back.value));
}

Result<Room> Peer::room_for_stage(const StageSpec& spec) {
  const std::size_t usual = options_.credits.value_or(usual_credits(*config_));
  SHOAL_ASSIGN(Room room, room_for(*config_, spec, usual, options_.memory_bytes, options_.program_bytes,
                                   env_.memory_free ? env_.memory_free() : std::nullopt));
  if (!room.text.empty()) owner_.on_notice(room.text);  // before a byte of its state comes
  return room;
}

void Peer::on_members(const MemberList& list) {
  std::vector<PeerId> favoured = peers_of(list);
  favoured.push_back(authority());
  life_->transport->favour(favoured);
  if (life_->stage) life_->stage->on_members(list);
}

// How the run stands, and whether the authority wants this peer at another stage. What is counted here is secured
// first, as when it leaves; then a new session of the same process joins there. Killed at any moment it is a peer that
// died.
void Peer::on_status(const BeatAck& status) {
  run_status_ = status;
  if (!stage_peer()) return;
  life_->stage->peer()->note_run(status.run_targets, status.run_loss);
  if (!status.move_to || !absence_.may_move(*status.move_to) || *status.move_to == spec_->stage ||
      !state_.is(PeerPhase::kServing) || options_.wish || options_.once || life_->membership->last_holder())
    return;
  const StageId to = *status.move_to;
  const auto specs = split_model(config_->model_spec(), config_->pipeline.stages, config_->pipeline.layers_per_stage);
  if (!specs.ok() || to.value >= specs->size()) return;
  const std::string there = "stage " + std::to_string(to.value);
  if (const auto fits = room_for_stage((*specs)[to.value]); !fits.ok()) {
    absence_.cannot_serve(to);
    return owner_.on_notice("asked to move to " + there + ", which this machine cannot serve: " + fits.error().message);
  }
  absence_.move(env_.loop.now(), to);
  begin_going("moving to " + there + ", where the run is weakest: no new microbatches here, ", "");
}

// ---- leaving it ----
void Peer::leave() {
  if (state_.is(PeerPhase::kOver)) return;
  if (state_.is(PeerPhase::kRestarting)) return finish("left; the session was over already", std::nullopt);
  if (absence_.is(AbsencePhase::kLeaving) || stage_peer() == nullptr) return finish("left at once", std::nullopt);
  if (absence_.goes()) {
    const std::string instead = absence_.is(AbsencePhase::kMoving) ? "for another stage" : "for a pause";
    absence_.leave(env_.loop.now());
    return owner_.on_notice("leaving, and not " + instead + " (again to go at once)");
  }
  absence_.leave(env_.loop.now());
  begin_going("leaving: no new microbatches, ", " (again to go at once)");
}

void Peer::begin_going(const std::string& line, const std::string& hint) {
  life_->stage->peer()->leave();
  life_->membership->beat_now();
  announce();
  owner_.on_notice(line + stage_peer()->waiting_for() + " to settle" + hint);
  check_going();
}

void Peer::check_going() {
  Membership& membership = *life_->membership;
  if (authority_is_linked()) state_.because(going_reason());
  const Absence::Step step =
      absence_.next(env_.loop.now(), {.last_holder = holds_alone(),
                                      .quiet = stage_peer()->quiet(),
                                      .asked = state_.is(PeerPhase::kLeaving),
                                      .held_up = !authority_is_linked() || stage_peer()->in_round()});
  if (step.tell_last && absence_.is(AbsencePhase::kMoving))
    return end_session("it stays: it is the last holder of the stage's state");
  if (step.tell_last && absence_.is(AbsencePhase::kPausing))
    owner_.on_warning("this is the last holder of stage " + std::to_string(spec_->stage.value) +
                      "'s state, which is kept in memory: the run waits until this machine is resumed");
  else if (step.tell_last)
    owner_.on_notice("this is the last holder of stage " + std::to_string(spec_->stage.value) +
                     "'s state: it goes with us; again to leave all the same");
  if (step.ask) {
    state_.move(PeerPhase::kLeaving, state_.reason());
    membership.leave(status().settled_targets > 0);
  }
  if (!step.give_up) return;
  const std::string how = absence_.give_up();
  if (absence_.is(AbsencePhase::kLeaving)) return finish(how, std::nullopt);
  membership.leave_at_once();
  end_session(how);
}

// What is waited for.
std::string Peer::going_reason() const {
  const std::string waiting = absence_.text() + ": waiting for ";
  if (life_->membership->last_holder()) return waiting + "another peer to take the stage's state";
  if (!state_.is(PeerPhase::kLeaving)) return waiting + stage_peer()->waiting_for();
  const std::uint64_t settled = status().settled_targets;
  if (settled == 0) return waiting + "the authority's goodbye";
  return waiting + "a round that secures " + std::to_string(settled) + " targets";
}

// ---- messages ----
void Peer::on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) {
  Life& life = *life_;
  if (!state_.in_session()) {
    if (transfer != 0) life.transport->refuse(remote.peer, transfer);
    return;
  }
  const bool may_have_frames = std::visit(
      [](const auto& m) { return AnyOf<decltype(m), Chunk, Extend, Forward, Gradient, RoundPart>; }, message);
  if (transfer != 0 && !may_have_frames) return life.transport->refuse(remote.peer, transfer);
  const auto to_stage = [&] {
    if (life.stage && life.stage->peer())
      life.stage->peer()->on_message(remote, message, transfer, frame_bytes);
    else if (transfer != 0)
      life.transport->refuse(remote.peer, transfer);
  };
  std::visit(
      OneTaker{
          [&](const StateQuery& m) {
            if (life.stage) life.stage->on_state_query(remote, m);
          },
          [&](const ChunkQuery& m) {
            if (life.stage) life.stage->on_chunk_query(remote, m);
          },
          [&](const StateOffer& m) {
            if (life.stage) life.stage->on_offer(remote, m);
          },
          [&](const Chunk& m) {
            if (life.stage)
              life.stage->on_chunk(remote, m, transfer, frame_bytes);
            else if (transfer != 0)
              life.transport->refuse(remote.peer, transfer);
          },
          [&](const Extend& m) {
            if (life.stage && life.stage->texts())
              life.stage->texts()->on_extend(remote, m, transfer, frame_bytes);
            else if (transfer != 0)
              life.transport->refuse(remote.peer, transfer);
          },
          [&](const Manifest& m) {
            if (remote.peer == authority() && !config_) on_manifest(m);
          },
          [&](const PeersQuery&) {
            if (auto records = announcing_.known()) send(remote.peer, Peers{*std::move(records)});
          },
          [&](const Peers& m) { announcing_.offer(m.records); },
          [&](const End& m) { on_end_message(remote, m); },
          // The stage's peer hears by them, too, that the authority is there.
          [&](const AnyOf<JoinAnswer, Members, MembersChange, BeatAck, Fenced, Goodbye> auto& m) {
            if (to_membership(remote, m)) to_stage();
          },
          [&](const AnyOf<Forward, Take, Busy, Have, Gone, NeedKeyFrame, Progress, Gradient, Release, Renew, Waiting,
                          Hint, Commit, CommitAck, Step, RoundOpen, RoundPart, RoundCommit, RoundAbandon> auto&) {
            to_stage();
          },
          // What the authority takes, and what a link keeps to itself.
          [](const AnyOf<JoinRequest, Beat, Leave, MembersQuery, RoundReport, ManifestQuery, Extended> auto&) {},
          [](const AnyOf<Hello, Ping, Pong, ByteCredit, DropTransfer> auto&) {},
      },
      message);
}

bool Peer::to_membership(const Remote& remote, const MembershipMessage& message) {
  if (!life_->membership || remote.peer != authority()) return true;
  if (const Status status = life_->membership->on_message(message); !status.ok())
    if (const auto times = said_.due(std::string(name_of(status.code())), env_.loop.now()))
      log_warning("from the authority: ", status.error().message, LogThrottle::text_of(*times));
  return !std::holds_alternative<Fenced>(message) && state_.in_session();
}

// The authority proved its key when the link came up; of anybody else the signature does.
void Peer::on_end_message(const Remote& remote, const End& end) {
  const bool is_signed = check_end(end, options_.run).ok();
  if (!is_signed && remote.peer != authority()) {
    log_debug("from ", short_name(remote.peer), ": an end of the run that the run's key did not sign");
    return;
  }
  if (is_signed) end_ = end;
  if (life_->membership) (void)life_->membership->on_message(end);
  if (!state_.is(PeerPhase::kOver)) on_end(end.reason);  // it asked for no place yet
}

void Peer::on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) {
  if (!state_.in_session()) return;
  if (life_->stage) life_->stage->on_frames(remote, transfer, frames);
}

// A machine that is told by another address than it comes from (a forwarded port, two networks) is dialled there once
// it paid: with the requests behind the first answer that says so.
void Peer::send_to_authority(Message message) {
  std::vector<Bytes> frames;
  if (std::holds_alternative<JoinRequest>(message) && !reachability_.why().empty())
    frames.push_back(Bytes::copy_of(std::string(kDialPaymentBytes, '\0')));
  send(authority(), std::move(message), std::move(frames));
}
void Peer::send(const PeerId& to, Message message, std::vector<Bytes> frames) {
  if (const auto sent = life_->transport->send(to, std::move(message), std::move(frames)); !sent.ok())
    log_debug("not sent: ", sent.error().message);
}

}  // namespace shoal
