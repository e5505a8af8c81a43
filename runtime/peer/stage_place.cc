#include "runtime/peer/stage_place.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/crypto/path_tag.h"
#include "common/log.h"
#include "runtime/config/frames_allowed.h"
#include "runtime/peer/peer.h"
#include "stages/adapters.h"
#include "state/first_state.h"

namespace shoal {

namespace {
constexpr Duration kStepBeat = 100ms;  // at least, between two beats for inner steps
}  // namespace

StagePlace::StagePlace(StagePlaceEnvironment environment)
    : env_(std::move(environment)),
      spec_(*env_.run.spec),
      first_is_fetched_(!env_.run.served->model.weights.empty() && !has_adapters(spec_.model)) {
  env_.state.because("making the stage on the device");
  ExecutorFactory factory = env_.process.factory_of ? env_.process.factory_of(*env_.run.served) : env_.process.factory;
  auto made = std::make_shared<Result<std::unique_ptr<StageExecutor>>>(make_error(ErrorCode::kGone, ""));
  env_.device.run(
      WorkKind::kBuild, [made, factory = std::move(factory), spec = spec_] { *made = factory(spec); },
      env_.session.guard([this, made] {
        if (!made->ok()) return env_.on_failed(made->error());
        executor_ = std::move(**made);
        begin();
      }));
}

void StagePlace::begin() {
  peer_ = std::make_unique<StagePeer>(StageSession{
      .config = env_.run.served,
      .spec = spec_,
      .self = env_.self,
      .authority = as_peer(env_.options.run),
      .credits = env_.run.credits,
      .tag_of = [key = env_.answer.path_key](const MicrobatchId& microbatch,
                                             EntrySerial serial) { return path_tag(key, microbatch, serial); },
      .loop = env_.process.loop,
      .links = env_.transport,
      .device = env_.device,
      .aside = env_.process.aside,
      .events = env_.events,
      .owner = *this,
      .executor = executor_,
      .deltas = env_.process.deltas});
  if (const auto remote = env_.transport.remote(as_peer(env_.options.run))) peer_->on_link_up(*remote);
  texts_ = std::make_unique<TextDesk>(
      TextDesk::Environment{.loop = env_.process.loop,
                            .links = env_.transport,
                            .spec = spec_,
                            .on_device =
                                [this](auto job, auto after) {
                                  peer_->run_on_device(WorkKind::kText, std::move(job),
                                                       [this, after = std::move(after)] { after(peer_->last_job()); });
                                },
                            .serving = [this] { return serving(); },
                            .version = [this] { return version(); }});
  donor_ = std::make_unique<StateDonor>(DonorOptions{}, static_cast<DonorHost&>(*this), env_.process.loop, spec_.stage);
  fetcher_ = std::make_unique<StateFetcher>(FetcherOptions{.sizes = image_sizes(executor_->arena().size())},
                                            static_cast<FetcherHost&>(*this), env_.process.loop, spec_.stage);
  if (has_adapters(spec_.model)) return begin_base();
  begin_state();
}

void StagePlace::begin_base() {
  const std::vector<Digest>& weights = env_.run.served->model.weights;
  if (spec_.stage.value >= weights.size())
    return env_.on_failed(
        make_error(ErrorCode::kMalformed, "the manifest has adapters, and no digest of the model beside them"));
  env_.state.move(PeerPhase::kFetching, "");
  base_ = std::make_unique<BaseWeights>(
      BaseWeights::Options{
          .spec = spec_, .digest = weights[spec_.stage.value], .folder = BaseFolder(env_.options.base_folder)},
      BaseWeights::Environment{
          .loop = env_.process.loop,
          .device = env_.device,
          .session = env_.session,
          .executor = executor_,
          .host = *this,
          .send = [this](const PeerId& to, Message message,
                         std::vector<Bytes> frames) { send(to, std::move(message), std::move(frames)); },
          .on_notice = [this](const std::string& line) { env_.owner.on_notice(line); },
          .on_loaded = [this] { begin_state(); },
          .on_failed = [this](const std::string& why) { env_.owner.end_session(why); }});
  if (env_.membership.list()) on_members(*env_.membership.list());
  base_->begin();
}

void StagePlace::begin_state() {
  if (env_.answer.initialise && !first_is_fetched_) {
    if (env_.state.is(PeerPhase::kFetching)) env_.state.move(PeerPhase::kLoading, "drawing the adapters");
    return env_.device.run(
        WorkKind::kSeed, [executor = executor_] { begin_from_seed(*executor); },
        env_.session.guard([this] { serve(Version(0)); }));
  }
  if (!env_.state.is(PeerPhase::kFetching)) env_.state.move(PeerPhase::kFetching, "");
  env_.state.because("waiting for a list that names the state");
  if (env_.membership.list()) on_members(*env_.membership.list());
}

void StagePlace::on_session_lost(const std::string& why) { env_.owner.end_session(why); }

void StagePlace::on_out_of_memory(const std::string& why) {
  const std::string text = "stage " + std::to_string(spec_.stage.value) +
                           ": memory does not hold one microbatch at a time (" + why +
                           "). HINT: end other programs, raise this container's limit, or lend a larger machine; " +
                           smaller_run_text(*env_.run.served, spec_);
  // Its caller is not done with the entry.
  env_.process.loop.post(env_.session.guard([this, text] { env_.on_failed(make_error(ErrorCode::kTooLarge, text)); }));
}

// ---- links and lists ----
void StagePlace::on_link_down(const Remote& remote) {
  inbound_.drop(remote.peer);
  if (texts_) texts_->on_link_down(remote.peer);
  if (peer_) peer_->on_link_down(remote);
  if (fetcher_) fetcher_->on_donor_down(remote.peer);
  if (base_) base_->fetcher().on_donor_down(remote.peer);
}

// Also fences the sessions that are over.
void StagePlace::tell(const MemberList& list) {
  for (const Session& over : peer_->on_members(list)) env_.transport.fence(over);
}

void StagePlace::on_members(const MemberList& list) {
  if (!peer_) return;
  tell(list);
  if (missed_ && serving()) return fetch_missed();
  const StageMembers* stage = env_.membership.stage_members();
  // The launching process has the first weights, and whoever serves with them or with adapters beside them.
  std::vector<PeerId> donors_of_first = env_.membership.donors();
  donors_of_first.push_back(as_peer(env_.options.run));
  if (base_ && !base_->loaded()) return base_->set_donors(std::move(donors_of_first));
  if (!env_.state.is(PeerPhase::kFetching) || stage == nullptr) return;
  if (stage->version == Version(0)) {
    const std::vector<Digest>& weights = env_.run.served->model.weights;
    if (!first_is_fetched_ || spec_.stage.value >= weights.size()) return;  // a list that knows of no round yet
    env_.state.because("fetching the first weights");
    return fetcher_->fetch(Version(0), weights[spec_.stage.value], std::move(donors_of_first));
  }
  std::optional<Bytes> ours;
  if (const KeptState::Image* kept = env_.kept.newest_of(*stage)) {
    env_.owner.on_notice("our own state of version " + std::to_string(kept->version.value) + " is the stage's newest");
    ours = kept->bytes;
  } else if ((ours = env_.checkpointing.read(stage->stage, stage->digest))) {
    env_.owner.on_notice("a state on our own disk is the stage's newest");
  }
  if (ours) {
    fetcher_->cancel();  // an older version
    missed_.reset();
    return load(*std::move(ours), stage->version);
  }
  on_behind(stage->version, stage->digest);
  const std::string version = "version " + std::to_string(missed_->version().value);
  env_.state.because(env_.membership.donors().empty() ? version + " is held by nobody who is here"
                                                      : "fetching " + version);
}

void StagePlace::on_message(const Remote& remote, const Message& message, TransferId transfer,
                            std::uint64_t frame_bytes) {
  const PeerId& from = remote.peer;
  if (const auto* m = std::get_if<StateQuery>(&message))
    return base_of_version(m->version) ? base_->on_query(from, *m) : donor_ ? donor_->on_query(from, *m) : void();
  if (const auto* m = std::get_if<ChunkQuery>(&message))
    return base_of_version(m->version) ? base_->on_chunk_query(from, *m)
           : donor_                    ? donor_->on_chunk_query(from, *m)
                                       : void();
  if (const auto* m = std::get_if<StateOffer>(&message)) {
    StateFetcher* const fetcher = fetcher_of(m->version);
    return fetcher != nullptr ? fetcher->on_offer(from, *m) : void();
  }
  if (const auto* m = std::get_if<Chunk>(&message)) return on_chunk(remote, *m, transfer, frame_bytes);
  const auto* const text = std::get_if<Extend>(&message);
  if (text != nullptr && texts_) return texts_->on_extend(remote, *text, transfer, frame_bytes);
  if (text == nullptr && peer_) return peer_->on_message(remote, message, transfer, frame_bytes);
  if (transfer != 0) env_.transport.refuse(from, transfer);
}

void StagePlace::on_chunk(const Remote& remote, const Chunk& chunk, TransferId transfer, std::uint64_t frame_bytes) {
  StateFetcher* fetcher = fetcher_of(chunk.version);
  if (!chunk_wanted(fetcher, remote.peer, chunk, frame_bytes)) {
    if (transfer != 0) env_.transport.refuse(remote.peer, transfer);
    return;
  }
  if (transfer == 0) return fetcher->on_chunk(remote.peer, chunk, {});
  if (!inbound_.add(remote.peer, transfer, chunk)) env_.transport.refuse(remote.peer, transfer);
}

void StagePlace::on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>>& frames) {
  if (const auto chunk = inbound_.take(remote.peer, transfer)) {
    StateFetcher* fetcher = fetcher_of(chunk->version);
    if (fetcher != nullptr && frames.ok() && frames->size() == 1)
      fetcher->on_chunk(remote.peer, *chunk, frames->front());
    return;
  }
  if (texts_ && texts_->on_frames(remote, transfer, frames)) return;
  if (peer_) peer_->on_frames(remote, transfer, frames);
}

void StagePlace::tick(TimePoint now) {
  if (missed_ && missed_->too_late(now) && missed_->turn(now)) fetch_missed();
  if (missed_ && serving() && missed_->too_late(now))
    return env_.owner.end_session("version " + std::to_string(missed_->version().value) +
                                  ", committed without us, could not be fetched");
  if (texts_) texts_->tick(now);
  write_checkpoint();
}

// ---- its state ----
void StagePlace::load(Bytes image, Version version) {
  if (env_.state.is(PeerPhase::kFetching)) env_.state.move(PeerPhase::kLoading, env_.state.reason());  // else it leaves
  auto loaded = std::make_shared<Result<StateHeader>>(StateHeader{});
  env_.device.run(
      WorkKind::kLoad,
      [executor = executor_, image = std::move(image), loaded, rules = env_.rules] {
        *loaded = load_state_image(*executor, image, StateLoad::kFresh, [&](RuleId id) { return rules.of(id).get(); });
      },
      env_.session.guard([this, loaded, version] {
        if (!loaded->ok()) return env_.owner.end_session("the state could not be loaded: " + loaded->error().message);
        rule_ = (*loaded)->rule;
        const StageMembers* stage = env_.membership.stage_members();
        if (stage == nullptr || stage->version <= version) return serve(version);
        if (env_.state.is(PeerPhase::kLoading)) env_.state.move(PeerPhase::kFetching, env_.state.reason());
        reached_ = version;
        if (missed_) missed_->aim(stage->version, stage->digest);
        if (missed_) missed_->go_on(env_.process.loop.now());
        on_members(*env_.membership.list());  // it moved on
      }));
}

void StagePlace::serve(Version version) {
  env_.kept.clear();
  missed_.reset();
  if (env_.state.is(PeerPhase::kLeaving))
    env_.state.because("");  // it gives the state to a peer that needs it before it goes
  else
    env_.state.move(PeerPhase::kServing, "");
  if (env_.membership.list()) tell(*env_.membership.list());
  const StageMembers* stage = env_.membership.stage_members();
  const StepId done = version > Version(0) && stage != nullptr ? stage->step : StepId(0);
  peer_->serve(version, rule_, done);
  env_.events.write({.event = EventKind::kServing, .version = version});
  env_.owner.on_notice("serving stage " + std::to_string(spec_.stage.value) + " from version " +
                       std::to_string(version.value));
  env_.membership.beat_now();
  env_.on_serving();
}

void StagePlace::on_version(Version version) {
  rule_ = peer_->state_rule();
  if (missed_ && missed_->version() <= version) {
    if (missed_->newest() > version && missed_->go_on(env_.process.loop.now())) {
      env_.process.loop.post(env_.session.guard([this] {  // the caller is not done with the session
        if (missed_) fetch_missed();
      }));
    } else {
      missed_.reset();
      if (env_.state.is(PeerPhase::kServing)) env_.state.because("");
    }
  }
  donor_->moved_on();
  if (env_.state.in_session()) env_.membership.beat_now();
}

// The authority opens rounds by what beats say is settled: said with every step, a round comes when it is due and not
// up to a beat's period later.
void StagePlace::on_inner_step() {
  const TimePoint now = env_.process.loop.now();
  if (!env_.state.is(PeerPhase::kServing) || now < next_step_beat_) return;
  next_step_beat_ = now + kStepBeat;
  env_.membership.beat_now();
}

// ---- what is kept, and given to others ----
void StagePlace::write_checkpoint() {
  if (!env_.state.is(PeerPhase::kServing) || !serving() || !env_.checkpointing.due(peer_->version())) return;
  env_.checkpointing.making();
  const Version version = peer_->version();
  auto image = std::make_shared<Bytes>();
  peer_->run_on_device(
      WorkKind::kImage,
      [image, rule = env_.rules.of(rule_), version](StageExecutor& executor) {
        *image = make_state_image(executor, *rule, version);
      },
      env_.session.guard([this, image, version] {  // the next session begins with none being made
        // A round that was committed while the job waited made it an image of another version than it says.
        if (peer_->version() != version) return env_.checkpointing.came_to_nothing();
        env_.checkpointing.made(std::move(*image));
      }));
}

void StagePlace::make_image(std::function<void(Result<StateImage>)> done) {
  const bool first = version() == Version(0);
  if (!serving() || (first && !first_is_fetched_))
    return done(make_error(ErrorCode::kBusy, "no secured version here yet"));
  auto image = std::make_shared<Result<StateImage>>(StateImage{});
  peer_->run_on_device(
      WorkKind::kImage,
      [image, first, rule = env_.rules.of(rule_), version = peer_->version()](StageExecutor& executor) {
        *image = hash_state_image(first ? make_first_image(executor) : make_state_image(executor, *rule, version));
      },
      [image, done = std::move(done)] { done(std::move(*image)); });
}

void StagePlace::send(const PeerId& to, Message message, std::vector<Bytes> frames) {
  if (const auto sent = env_.transport.send(to, std::move(message), std::move(frames)); !sent.ok())
    log_debug("not sent: ", sent.error().message);
}

Version StagePlace::version() const { return serving() ? peer_->version() : Version(0); }

std::optional<KeptState::Source> StagePlace::source() const {
  if (!serving() || !executor_) return std::nullopt;
  KeptState::Source source{.executor = executor_, .version = peer_->version(), .rule = env_.rules.of(rule_)};
  if (const auto& prepared = peer_->prepared())
    source.candidate = {.version = Version(prepared->base.value + 1),
                        .rule = env_.rules.of(static_cast<RuleId>(prepared->rule))};
  if (!source.worth_keeping()) return std::nullopt;
  return source;
}

void StagePlace::add_to(Beat& beat) const {
  const StagePeerStatus status = peer_->status();
  const PeerFigures figures = peer_->figures();
  beat.version = serving() ? version() : reached_;
  // Also while it leaves: it takes part in the round that secures its work, and gives its state to others.
  beat.serving = serving();
  beat.inner_steps = figures.inner_steps;
  beat.settled_targets = status.settled_targets;
  beat.job_ms = status.job_ms;
  beat.longest_ms = status.longest_ms;
  beat.stranded = status.stranded;
  beat.refused = peer_->refused();
  beat.behind = missed_.has_value();
  beat.delay_milli =
      static_cast<std::uint16_t>(std::lround(1000 * figures.delay));  // below 1000 * DelayHistogram::kBins
  if (figures.forward_us) beat.capacity.forward_us = static_cast<std::uint32_t>(std::lround(*figures.forward_us));
  if (figures.backward_us) beat.capacity.backward_us = static_cast<std::uint32_t>(std::lround(*figures.backward_us));
}

}  // namespace shoal
