// From a ticket's addresses to a place in the run: the link to the authority, the manifest, the admission.
#include <algorithm>

#include "runtime/peer/peer.h"

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
  if (life_->stage_peer) life_->stage_peer->on_link_up(remote);
  if (!is_authority(remote.peer)) return;
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
  life_->inbound.drop(remote.peer);
  if (life_->stage_peer) life_->stage_peer->on_link_down(remote);
  if (life_->fetcher) life_->fetcher->on_donor_down(remote.peer);
  if (!is_authority(remote.peer)) return;
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
    if (record->ended) return on_end(*record->ended);
    if (record->addresses.empty()) return;
    options_.authority_addresses = record->addresses;
    life_->transport->learn(authority(), record->addresses);
  }));
}

// ---- the manifest ----
void Peer::on_manifest(const Manifest& manifest) {
  Signature signature{};
  const ByteView body{reinterpret_cast<const std::uint8_t*>(manifest.body.data()), manifest.body.size()};
  if (manifest.signature.size() != signature.size())
    return finish("", make_error(ErrorCode::kCorrupt, "the run's manifest carries no signature"));
  std::copy(manifest.signature.begin(), manifest.signature.end(), signature.begin());
  if (!verify(authority(), body, signature))
    return finish("",
                  make_error(ErrorCode::kCorrupt,
                             "the run's manifest is damaged or was not signed by the run's key: ask for a new ticket"));
  auto config = parse_manifest(manifest.body);
  if (!config.ok()) return finish("", config.error());
  config_ = std::make_shared<const RunConfig>(*std::move(config));
  if (const Status closed = close_to_strangers(); !closed.ok()) return finish("", closed.error());
  checkpointing_.set_policy(from_seconds(config_->checkpoint.every_s), config_->checkpoint.keep);
  if (env_.factory_of) env_.factory = env_.factory_of(*config_);
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
  MembershipOptions options;
  options.run = options_.run;
  options.self = life_->session;
  options.request.wish = options_.wish;
  options.request.device = options_.device;
  options.request.addresses = options_.addresses;
  kept_.tell(options.request);
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
  const auto line = reachability_.told_to_wait(env_.loop.now(), reason);
  state_.because(reason);
  if (line) owner_.on_warning(*line);
}

void Peer::on_refused(const std::string& reason) {
  finish("", make_error(ErrorCode::kRefused, "the authority refused us: " + reason + ". " + kRefusedHint));
}

void Peer::on_joined(const JoinAnswer& answer) {
  life_->answer = answer;
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

}  // namespace shoal
