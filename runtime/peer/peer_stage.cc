// A peer's state: from the stage it was given to serving it, fetched from others or kept over a fence; and what it
// gives to others.
#include <algorithm>

#include "runtime/peer/peer.h"
#include "runtime/plan/stage_memory.h"

namespace shoal {

// ---- the stage ----
void Peer::build_stage(StageId stage) {
  auto specs = split_model(config_->model_spec(), config_->pipeline.stages, config_->pipeline.layers_per_stage);
  if (!specs.ok() || stage.value >= specs->size())
    return finish(
        "", make_error(ErrorCode::kMalformed, "the manifest's split has no stage " + std::to_string(stage.value)));
  if (spec_ && spec_->stage != stage) announcing_.withdraw(spec_->stage);  // of the session before
  spec_ = (*specs)[stage.value];
  env_.events.set_stage(stage);
  announce();
  if (options_.memory_bytes > 0) {
    auto credits = credits_within(options_.memory_bytes, *config_, *spec_);
    if (!credits.ok()) return finish("", credits.error());
    credits_ = *credits;
  } else {
    credits_ = options_.credits.value_or(usual_credits(*config_));
  }
  state_.because("making the stage on the device");
  auto made = std::make_shared<Result<std::unique_ptr<StageExecutor>>>(make_error(ErrorCode::kGone, ""));
  device_.run(
      WorkKind::kBuild, [made, factory = env_.factory, spec = *spec_] { *made = factory(spec); },
      life_->lifetime.guard([this, made] {
        if (!made->ok()) return finish("", made->error());
        life_->executor = std::move(**made);
        begin_stage();
      }));
}

void Peer::begin_stage() {
  Life& life = *life_;
  life.stage_peer = std::make_unique<StagePeer>(
      StagePeerOptions{
          .config = config_, .spec = *spec_, .self = life.session, .authority = authority(), .credits = credits_},
      StagePeerEnvironment{.loop = env_.loop,
                           .links = *life.transport,
                           .device = device_,
                           .aside = env_.aside,
                           .events = env_.events,
                           .executor = life.executor,
                           .deltas = env_.deltas},
      static_cast<StagePeer::Owner&>(*this));
  if (const auto remote = life.transport->remote(authority())) life.stage_peer->on_link_up(*remote);
  life.donor = std::make_unique<StateDonor>(DonorOptions{}, static_cast<DonorHost&>(*this), env_.loop, spec_->stage);
  life.fetcher = std::make_unique<StateFetcher>(FetcherOptions{.sizes = image_sizes(life.executor->arena().size())},
                                                static_cast<FetcherHost&>(*this), env_.loop, spec_->stage);
  if (life.answer->initialise)
    return device_.run(
        WorkKind::kSeed, [executor = life.executor] { begin_from_seed(*executor); },
        life.lifetime.guard([this] { serve(Version(0)); }));
  state_.move(PeerPhase::kFetching, "waiting for a list that names the state");
  if (life.membership->list()) on_members(*life.membership->list());
}

// ---- its state ----
const StageMembers* Peer::own_stage() const {
  if (!life_->membership || !life_->membership->list() || !spec_) return nullptr;
  for (const StageMembers& stage : life_->membership->list()->stages)
    if (stage.stage == spec_->stage) return &stage;
  return nullptr;
}

std::optional<StageId> Peer::empty_stage() const {
  if (!life_ || !life_->membership || !life_->membership->list()) return std::nullopt;
  for (const StageMembers& stage : life_->membership->list()->stages)
    if (std::ranges::none_of(stage.members, &Member::serving)) return stage.stage;
  return std::nullopt;
}

std::vector<PeerId> Peer::donors_of(const StageMembers& stage) const {
  std::vector<PeerId> donors;
  for (const Member& member : stage.members)
    if (may_donate(member) && member.session != life_->session) donors.push_back(member.peer);
  return donors;
}

void Peer::tell_stage(const MemberList& list) {
  for (const Session& over : life_->stage_peer->on_members(list)) life_->transport->fence(over);
}

void Peer::on_members(const MemberList& list) {
  std::vector<PeerId> favoured = peers_of(list);
  favoured.push_back(authority());
  life_->transport->favour(favoured);
  if (life_->stage_peer) tell_stage(list);
  if (life_->missed) return fetch_missed();
  const StageMembers* stage = own_stage();
  if (!state_.is(PeerPhase::kFetching) || stage == nullptr) return;
  if (const KeptState::Image* kept = kept_.newest_of(*stage)) {
    owner_.on_notice("our own state of version " + std::to_string(kept->version.value) + " is the stage's newest");
    life_->fetcher->cancel();  // of an older version
    return load(kept->bytes, stage->version);
  }
  std::vector<PeerId> donors = donors_of(*stage);
  state_.because(donors.empty() ? "version " + std::to_string(stage->version.value) + " is held by nobody who is here"
                                : "fetching version " + std::to_string(stage->version.value));
  life_->fetcher->fetch(stage->version, stage->digest, std::move(donors));
}

void Peer::on_progress(std::uint64_t bytes, std::uint64_t total) {
  if (state_.is(PeerPhase::kFetching)) state_.because("");  // whatever it waited for before
  life_->fetched = bytes;
  life_->fetch_total = total;
  if (life_->missed) life_->missed->flows(env_.loop.now());
}

void Peer::on_making() {
  if (life_->missed) life_->missed->is_made(env_.loop.now());
}

void Peer::on_waiting(const std::string& why) {
  state_.because(why);
  owner_.on_notice("waiting for state: " + why);
}

void Peer::on_fetched(Bytes image) {
  if (life_->missed) {
    life_->missed->arrived();
    if (!life_->stage_peer->catch_up(std::move(image))) life_->missed.reset();
  } else if (!life_->stage_peer->serving()) {
    load(image, parse_state_header(image)->version);
  }  // else the version came another way
}

void Peer::load(Bytes image, Version version) {
  if (state_.is(PeerPhase::kFetching)) state_.move(PeerPhase::kLoading, state_.reason());  // else it leaves already
  auto loaded = std::make_shared<Result<StateHeader>>(StateHeader{});
  device_.run(
      WorkKind::kLoad,
      [executor = life_->executor, image = std::move(image), loaded, rules = rules_] {
        *loaded = load_state_image(*executor, image, StateLoad::kFresh, [&](RuleId id) { return rules.of(id).get(); });
      },
      life_->lifetime.guard([this, loaded, version] { on_loaded(*loaded, version); }));
}

void Peer::on_loaded(const Result<StateHeader>& loaded, Version version) {
  if (!loaded.ok()) return end_session("the state could not be loaded: " + loaded.error().message);
  life_->state_rule = loaded->rule;
  const StageMembers* stage = own_stage();
  if (stage == nullptr || stage->version <= version) return serve(version);
  if (state_.is(PeerPhase::kLoading)) state_.move(PeerPhase::kFetching, state_.reason());
  on_members(*life_->membership->list());  // it moved on
}

void Peer::serve(Version version) {
  kept_.clear();
  if (state_.is(PeerPhase::kLeaving))
    state_.because("");  // it gives the state to whoever needs it before it goes
  else
    state_.move(PeerPhase::kServing, "");
  if (life_->membership->list()) tell_stage(*life_->membership->list());
  const StageMembers* stage = own_stage();
  const StepId done = version > Version(0) && stage != nullptr ? stage->step : StepId(0);
  life_->stage_peer->serve(version, life_->state_rule, done);
  env_.events.write({.event = EventKind::kServing, .version = version});
  owner_.on_notice("serving stage " + std::to_string(spec_->stage.value) + " from version " +
                   std::to_string(version.value));
  life_->membership->beat_now();
  announce();
}

void Peer::on_version(Version version) {
  life_->state_rule = life_->stage_peer->state_rule();
  if (life_->missed && life_->missed->version() <= version) {
    if (life_->missed->newest() > version && life_->missed->go_on(env_.loop.now())) {
      env_.loop.post(life_->lifetime.guard([this] {  // whoever calls us is not done with the session
        if (life_->missed) fetch_missed();
      }));
    } else {
      life_->missed.reset();
      if (state_.is(PeerPhase::kServing)) state_.because("");
    }
  }
  life_->donor->moved_on();
  if (state_.in_session()) life_->membership->beat_now();
}

// ---- a version that was committed without this session ----
void Peer::on_behind(Version version, const Digest& digest) {
  const TimePoint now = env_.loop.now();
  // Who gives the state makes it between two jobs, and its jobs are like ours.
  const Duration patience = std::max(config_->membership(), 2 * life_->stage_peer->status().longest_job);
  if (!life_->missed) {
    life_->missed.emplace(version, digest, now, patience);
    if (state_.in_session()) life_->membership->beat_now();
  }
  life_->missed->aim(version, digest);
  fetch_missed();
}

void Peer::fetch_missed() {
  MissedVersion& missed = *life_->missed;
  std::vector<PeerId> donors;
  if (const StageMembers* stage = own_stage()) {
    missed.aim(stage->version, stage->digest);
    donors = donors_of(*stage);
  }
  if (missed.overtaken_too_often())
    return end_session("rounds are committed faster than their state can be fetched here");
  if (missed.to_fetch()) life_->fetcher->fetch(missed.version(), missed.digest(), std::move(donors));
}

// ---- its checkpoint ----
void Peer::write_checkpoint() {
  StagePeer* const here = life_->stage_peer.get();
  if (!state_.is(PeerPhase::kServing) || here == nullptr || !here->serving() || !checkpointing_.due(here->version()))
    return;
  checkpointing_.making();
  const Version version = here->version();
  auto image = std::make_shared<Bytes>();
  here->run_on_device(
      WorkKind::kImage,
      [image, rule = rules_.of(life_->state_rule), version](StageExecutor& executor) {
        *image = make_state_image(executor, *rule, version);
      },
      lifetime_.guard([this, image, version, watch = life_->lifetime.watch()] {
        // A round that was committed while the job waited made it an image of another version than it says.
        if (watch.over() || life_->stage_peer->version() != version) return checkpointing_.came_to_nothing();
        checkpointing_.made(std::move(*image));
      }));
}

// ---- for others ----
void Peer::make_image(std::function<void(Result<StateImage>)> done) {
  StagePeer* const stage_peer = life_->stage_peer.get();
  if (version() == Version(0)) return done(make_error(ErrorCode::kBusy, "no secured version here yet"));
  auto image = std::make_shared<Result<StateImage>>(StateImage{});
  stage_peer->run_on_device(
      WorkKind::kImage,
      [image, r = rules_.of(life_->state_rule), version = stage_peer->version()](StageExecutor& executor) {
        *image = hash_state_image(make_state_image(executor, *r, version));
      },
      [image, done = std::move(done)] { done(std::move(*image)); });
}

Version Peer::version() const {
  const StagePeer* const here = stage_peer();
  return here != nullptr && here->serving() ? here->version() : Version(0);
}

std::optional<std::pair<StageId, Version>> Peer::held_state() const {
  if (const auto kept = kept_.newest()) return kept;
  const StagePeer* const here = stage_peer();
  if (here != nullptr && here->version() > Version(0)) return std::pair{spec_->stage, here->version()};
  return std::nullopt;
}

}  // namespace shoal
