// A peer's state: from the stage it was given to serving it, fetched from others or kept over a fence; and what it
// gives to others.
#include "common/log.h"
#include "runtime/peer/peer.h"
#include "runtime/stage_peer/stage_memory.h"

namespace shoal {

namespace {
constexpr std::uint32_t kOvertakenMax =
    3;  // then a new session, for whom the authority holds its rounds a while, is the faster way
}

void Peer::on_joined(const JoinAnswer& answer) {
  answer_ = answer;
  ever_joined_ = true;
  undialled_since_.reset();
  owner_.on_notice("stage " + std::to_string(answer.stage.value) + " of " + std::to_string(config_->pipeline.stages) +
                   ": " + answer.reason);
  build_stage(answer.stage);
}

void Peer::build_stage(StageId stage) {
  auto specs = split_model(config_->model_spec(), config_->pipeline.stages, config_->pipeline.layers_per_stage);
  if (!specs.ok() || stage.value >= specs->size())
    return finish(
        "", make_error(ErrorCode::kMalformed, "the manifest's split has no stage " + std::to_string(stage.value)));
  if (spec_ && spec_->stage != stage && env_.directory != nullptr)  // of the session before
    env_.directory->withdraw(stage_key(options_.run, spec_->stage));
  spec_ = (*specs)[stage.value];
  env_.events.set_stage(stage);
  announce();
  if (options_.memory_bytes > 0) {
    auto credits = credits_within(options_.memory_bytes, *config_, *spec_);
    if (!credits.ok()) return finish("", credits.error());
    options_.credits = *credits;
  }
  auto made = std::make_shared<Result<std::unique_ptr<StageExecutor>>>(make_error(ErrorCode::kGone, ""));
  env_.device.run(
      DeviceTask::kState, [made, factory = env_.factory, spec = *spec_] { *made = factory(spec); },
      [this, made, alive = session_alive_] {
        if (!*alive || over_) return;
        if (!made->ok()) return finish("", made->error());
        executor_ = std::move(**made);
        get_state();
      });
}

void Peer::get_state() {
  StagePeerOptions options;
  options.config = config_;
  options.spec = *spec_;
  options.self = session_;
  options.authority = as_peer(options_.run);
  options.credits = options_.credits;
  options.planted = options_.planted;
  stage_peer_ = std::make_unique<StagePeer>(
      std::move(options), StagePeerEnvironment{env_.loop, *transport_, env_.device, env_.events, executor_, env_.coder},
      static_cast<StagePeer::Owner&>(*this));
  if (const auto authority = transport_->remote(as_peer(options_.run))) stage_peer_->on_link_up(*authority);
  donor_ = std::make_unique<StateDonor>(DonorOptions{}, static_cast<DonorHost&>(*this), env_.loop, spec_->stage);
  fetcher_ =
      std::make_unique<StateFetcher>(FetcherOptions{}, static_cast<FetcherHost&>(*this), env_.loop, spec_->stage);
  if (answer_->initialise) {
    env_.device.run(
        DeviceTask::kState,
        [executor = executor_, spec = *spec_] {
          Arena& arena = executor->arena();
          if (arena.size() == parameter_count(spec)) initialise(spec, arena.span(ArenaRole::kCurrent));
          const auto current = arena.span(ArenaRole::kCurrent);
          std::copy(current.begin(), current.end(), arena.span(ArenaRole::kAnchor).begin());
          arena.push(ArenaRole::kCurrent);
          arena.push(ArenaRole::kAnchor);
        },
        [this, alive = session_alive_] {
          if (*alive && !over_) serve(Version(0));
        });
    return;
  }
  phase_ = PeerPhase::kFetching;
  reason_ = "waiting for a list that names the state";
  if (membership_->list()) on_members(*membership_->list());
}

void Peer::on_members(const MemberList& list) {
  if (stage_peer_) stage_peer_->on_members(list);
  if (missed_) return fetch_missed();
  if (phase_ != PeerPhase::kFetching || loading_ || !spec_) return;
  for (const StageMembers& stage : list.stages) {
    if (stage.stage != spec_->stage) continue;
    for (const Held& held : held_) {
      if (held.stage != stage.stage || held.version != stage.version || held.digest != stage.digest) continue;
      owner_.on_notice("our own state of version " + std::to_string(held.version.value) + " is the stage's newest");
      return load(held.image);
    }
    std::vector<PeerId> donors;
    for (const Member& member : stage.members)
      if (may_donate(member) && member.session != session_) donors.push_back(member.peer);
    reason_ = donors.empty() ? "version " + std::to_string(stage.version.value) + " is held by nobody who is here"
                             : "fetching version " + std::to_string(stage.version.value);
    fetcher_->fetch(stage.version, stage.digest, std::move(donors));
  }
}

void Peer::on_fetched(Bytes image) {
  if (!missed_) return load(std::move(image));
  missed_->until = TimePoint::max();  // it is here: the device decides when
  if (!stage_peer_->catch_up(std::move(image))) missed_.reset();
}

void Peer::on_behind(Version version, const Digest& digest) {
  if (!missed_) missed_ = Missed{version, digest, 0, false, env_.loop.now() + config_->membership()};
  aim_missed(version, digest);
  fetch_missed();
}

void Peer::aim_missed(Version version, const Digest& digest) {
  if (version <= missed_->version) return;
  missed_->version = version;
  missed_->digest = digest;
  if (std::exchange(missed_->flows, false)) ++missed_->overtaken;
  if (missed_->until == TimePoint::max()) missed_->until = env_.loop.now() + config_->membership();
}

void Peer::fetch_missed() {
  std::vector<PeerId> donors;
  for (const StageMembers& stage : membership_->list()->stages) {
    if (stage.stage != spec_->stage) continue;
    aim_missed(stage.version, stage.digest);
    for (const Member& member : stage.members)
      if (may_donate(member) && member.session != session_) donors.push_back(member.peer);
  }
  if (missed_->overtaken > kOvertakenMax)
    return end_session("rounds are committed faster than their state can be fetched here");
  if (missed_->until < TimePoint::max()) fetcher_->fetch(missed_->version, missed_->digest, std::move(donors));
}

void Peer::check_missed(TimePoint now) {
  if (missed_ && now >= missed_->until)
    end_session("version " + std::to_string(missed_->version.value) + ", committed without us, could not be fetched");
}

void Peer::load(Bytes image) {
  loading_ = true;
  auto loaded = std::make_shared<Result<StateHeader>>(StateHeader{});
  env_.device.run(
      DeviceTask::kState,
      [executor = executor_, image, loaded, allreduce = allreduce_, diloco = diloco_] {
        *loaded = load_state_image(*executor, image, StateLoad::kFresh, [&](RuleId id) -> const OuterRule* {
          return id == RuleId::kAllreduce ? allreduce.get() : diloco.get();
        });
      },
      [this, loaded, alive = session_alive_] {
        if (!*alive || over_) return;
        loading_ = false;
        if (!loaded->ok()) return end_session("the state could not be loaded: " + loaded->error().message);
        state_rule_ = (*loaded)->rule;
        const Version version = (*loaded)->version;
        for (const StageMembers& stage : membership_->list()->stages)
          if (stage.stage == spec_->stage && stage.version > version)
            return on_members(*membership_->list());  // it moved on
        serve(version);
      });
}

void Peer::serve(Version version) {
  held_.clear();
  phase_ = PeerPhase::kServing;
  reason_ = "";
  if (membership_->list()) stage_peer_->on_members(*membership_->list());
  stage_peer_->serve(version, state_rule_);
  env_.events.write({.event = EventName::kServing, .version = version});
  owner_.on_notice("serving stage " + std::to_string(spec_->stage.value) + " from version " +
                   std::to_string(version.value));
  membership_->beat_now();
  announce();
}

void Peer::make_image(std::function<void(Result<StateImage>)> done) {
  if (!stage_peer_ || !stage_peer_->serving() || stage_peer_->version().value == 0)
    return done(make_error(ErrorCode::kBusy, "no secured version here yet"));
  auto image = std::make_shared<Result<StateImage>>(StateImage{});
  stage_peer_->run_on_device(
      DeviceTask::kState,
      [image, r = rule(state_rule_), version = stage_peer_->version()](StageExecutor& executor) {
        *image = hash_state_image(make_state_image(executor, *r, version));
      },
      [image, done = std::move(done)] { done(std::move(*image)); });
}

Version Peer::version() const { return stage_peer_ && stage_peer_->serving() ? stage_peer_->version() : Version(0); }

void Peer::on_progress(std::uint64_t bytes, std::uint64_t total) {
  fetched_ = bytes;
  fetch_total_ = total;
  if (!missed_) return;
  missed_->flows = true;
  missed_->until = env_.loop.now() + config_->membership();
}

void Peer::on_waiting(const std::string& why) {
  reason_ = why;
  owner_.on_notice("waiting for state: " + why);
}

std::optional<std::pair<StageId, Version>> Peer::held_state() const {
  if (!held_.empty()) return std::pair{held_.back().stage, held_.back().version};
  if (stage_peer_ && stage_peer_->version().value > 0) return std::pair{spec_->stage, stage_peer_->version()};
  return std::nullopt;
}

}  // namespace shoal
