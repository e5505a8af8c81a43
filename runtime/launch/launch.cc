#include "runtime/launch/launch.h"

#include "common/crypto/hash.h"
#include "common/crypto/path_tag.h"
#include "common/trainer_id.h"
#include "runtime/config/derived_options.h"
#include "runtime/launch/parked_text.h"
#include "runtime/plan/boundary_price.h"
#include "runtime/plan/codec_price.h"
#include "runtime/plan/flight_plan.h"
#include "runtime/plan/line_bytes.h"
#include "runtime/plan/split_limits.h"
#include "runtime/plan/stage_work.h"

namespace shoal {

namespace {
constexpr Duration kTick = 200ms;
constexpr Duration kBytesPeriod = 1s;
constexpr Duration kParkedPause = 10s;  // between two lines that say why it stands still

ByteView as_bytes(const std::string& text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

AuthorityOptions authority_options(const LaunchOptions& options) {
  const RunConfig& config = options.config;
  AuthorityOptions result;
  result.run = RunId{options.key.id().bytes};
  result.path_secret = path_secret_of(options.key);
  result.stages = config.pipeline.stages;
  result.rule = config.sync.rule;
  result.warm_steps = config.sync.warm_steps;
  result.round_targets = traits_of(config.sync.rule).every_step ? 0 : config.targets_per_round();
  result.round_cap = from_seconds(config.sync.round_cap_s);
  result.membership = config.membership();
  result.restore_after = config.restore_after();
  result.round_budget =
      options.round_budget > Duration(0) ? options.round_budget : from_seconds(config.sync.round_budget_s);
  result.entry_targets = config.targets_per_microbatch();
  result.payload_bytes = payload_bytes(config);
  result.rebalance = config.pipeline.rebalance == Rebalance::kAuto;
  result.rebalance_horizon = from_seconds(config.pipeline.rebalance_horizon_s);
  result.stage_work = stage_work(config);
  result.layout = options.layout;
  return result;
}
}  // namespace

Launch::Launch(LaunchOptions options, LaunchEnvironment environment, LaunchOwner& owner)
    : options_(std::move(options)), env_(std::move(environment)), owner_(owner) {}

Launch::~Launch() { env_.loop.cancel(timer_); }

Result<std::unique_ptr<Launch>> Launch::open(LaunchOptions options, LaunchEnvironment environment, LaunchOwner& owner) {
  SHOAL_CHECK(!options.save || environment.run_aside);
  SHOAL_CHECK(environment.first == nullptr || environment.run_aside);
  std::unique_ptr<Launch> launch(new Launch(std::move(options), std::move(environment), owner));
  SHOAL_TRY(launch->open_parts());
  return launch;
}

Status Launch::open_parts() {
  SHOAL_TRY(check_split_limits(options_.config));
  SHOAL_ASSIGN(manifest_.body, canonical_text(options_.config));
  manifest_.signature = sign(as_bytes(manifest_.body));
  SHOAL_ASSIGN(logs_, RunLogs::open(options_, env_.storage, env_.samples));
  AuthorityOptions options = authority_options(options_);
  options.manifest = manifest_;
  auto authority = Authority::open(std::move(options), *this, env_.loop, logs_->take_authority());
  if (!authority.ok())
    return make_error(authority.code(), authority_log_path(options_.folder) + ": " + authority.error().message);
  authority_ = *std::move(authority);
  end_ = std::make_unique<RunEnd>(
      RunEnd::Environment{env_.loop, env_.events, options_, owner_, logs_->book(), logs_->trainer(), *authority_,
                          env_.run_aside, [this] { return had_every_stage_; },
                          [this](const std::string& reason) { announcer_->tell_end(authority_->status(), reason); },
                          [this](std::optional<Error> error) { on_over(std::move(error)); }});
  return {};
}

// A process that died before it synced leaves records that are read back here and that a power loss takes: what follows
// from them (COMMITs, lists, round commits, END) must not be known to others before they are durable.
void Launch::start() {
  logs_->trainer().sync(lifetime_.guard([this](const Status& trainer) {
    if (phase() == RunPhase::kOver) return;
    if (!trainer.ok()) return on_log_failure(trainer.error());
    authority_->sync_log([this](const Status& authority) {
      if (phase() == RunPhase::kOver) return;
      if (!authority.ok()) return on_log_failure(authority.error());
      begin();
    });
  }));
}

void Launch::begin() {
  SHOAL_CHECK(logs_->trainer().settled());
  session_ = Session::of(options_.key.id(), env_.rng.next());
  env_.events.set_session(session_);
  write({.event = EventKind::kStart, .cause = options_.resume ? "resume" : ""});
  const RunId run{options_.key.id().bytes};
  transport_ = std::make_unique<Transport>(
      env_.wire, env_.loop,
      Transport::Options{run, options_.key.id(), session_, PeerRole::kTrainer, options_.whereabouts});
  transport_->set_listener(this);
  // What it gives to others beside microbatches: the first weights to peers, and texts to people.
  if (env_.first != nullptr)
    first_weights_ = std::make_unique<FirstWeights>(
        FirstWeights::Environment{.first = *env_.first,
                                  .run_aside = env_.run_aside,
                                  .send = [this](const PeerId& to, Message message, std::vector<Bytes> frames) {
                                    send(to, std::move(message), std::move(frames));
                                  }});
  if (const RunConfig& config = options_.config; config.report.sample_every != 0 && env_.code != nullptr) {
    auto specs = split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage);
    SHOAL_CHECK(specs.ok());
    texts_ = std::make_unique<TextSamples>(
        config.report, TextSamples::Environment{.loop = env_.loop,
                                                .links = *transport_,
                                                .specs = *std::move(specs),
                                                .rng = env_.rng.fork("texts"),
                                                .code = *env_.code,
                                                .show = [this](const std::string& line) { owner_.on_notice(line); }});
  }
  dial_back_ = std::make_unique<DialBack>(*transport_, env_.loop,
                                          [this](const DialBack::Verdict& verdict) { on_dialled_back(verdict); });
  trainer_ = std::make_unique<Trainer>(
      TrainerOptions{options_.config, session_, trainer_id_of(options_.key.id()),
                     [secret = path_secret_of(options_.key)](const EntryName& entry, const MicrobatchId& microbatch) {
                       return path_tag(path_key_of(secret, entry.session), microbatch, entry.serial);
                     }},
      TrainerEnvironment{env_.loop, *transport_, env_.events, env_.samples, logs_->book(), logs_->trainer()},
      static_cast<Trainer::Owner&>(*this));
  authority_->start();
  if (const Status on_list = authority_->set_relays(options_.relays); !on_list.ok())
    owner_.on_warning("members are told no relay: " + on_list.error().message);
  announcer_ =
      std::make_unique<Announcer>(Announcer::Environment{env_.loop, env_.directory, options_, logs_->book(),
                                                         *authority_, *transport_, [this] { return summary(); }},
                                  blake2b_256(as_bytes(manifest_.body)));
  if (book().ended()) return end_->begin(*trainer_, *transport_);
  for (const std::string& warning : split_warnings(options_.config)) owner_.on_warning(warning);
  if (const auto warning = price_warning(options_.config)) owner_.on_warning(*warning);
  if (const auto warning = codec_warning(options_.config)) owner_.on_warning(*warning);
  if (const auto warning = boundary_warning(options_.config)) owner_.on_warning(*warning);
  if (const auto warning = round_warning(options_.config)) owner_.on_warning(*warning);
  if (const auto notice = pipe_notice(options_.config)) owner_.on_notice(*notice);
  if (const auto warning = few_steps_warning(options_.config)) owner_.on_warning(*warning);
  logs_->begin_life(session_, env_.samples);
  logs_->trainer().sync(lifetime_.guard([this](const Status& status) {
    if (!status.ok()) on_log_failure(status.error());
  }));
  trainer_->announce_steps();
  tick();
  end_->begin(*trainer_, *transport_);
}

void Launch::later(std::function<void()> task) { env_.loop.post(lifetime_.guard(std::move(task))); }

void Launch::tick() {
  env_.loop.name_callback("launch tick");
  timer_ = env_.loop.after(kTick, lifetime_.guard([this] { tick(); }));
  const TimePoint now = env_.loop.now();
  const std::vector<StageStatus> stages = authority_->status();
  if (const auto late = delays_.take(stages, options_.config)) owner_.on_warning(*late);
  if (!end_->finishing())
    for (const std::string& old : checkpoints_.take(stages, options_.config, now)) owner_.on_warning(old);
  announcer_->tick(stages, end_->finishing());
  if (now >= next_bytes_) write_bytes();
  for (const InboundFrames& late : payments_.take_late(now)) transport_->refuse(late.peer, late.transfer);
  logs_->tend(*authority_, env_.loop, owner_, !end_->finishing());
  if (had_every_stage_ && trainer_->reached_end()) finish("all tokens are committed");
  end_->tick(now);
  for (const std::string& line : losses_.take(now)) owner_.on_notice(line);
  tell_parked(now, stages);
}

// Once, and again when it stands still for another reason; how long it has been so is the status's.
void Launch::tell_parked(TimePoint now, std::vector<StageStatus> stages) {
  const std::string parked = parked_text();
  if (parked.empty()) {
    parked_told_.clear();
    return parked_since_.reset();
  }
  if (!parked_since_) parked_since_ = now;
  for (StageStatus& stage : stages) stage.back_in = {};
  std::string still = shoal::parked_text(stages, authority_->members());
  if (still.empty()) still = "the window is full";
  if (still != parked_told_ && now >= next_parked_) {
    next_parked_ = now + kParkedPause;
    parked_told_ = std::move(still);
    owner_.on_notice(parked);
  }
  owner_.on_parked_for(now - *parked_since_);
}

// Every second what was added since: a killed process leaves out a second at most.
void Launch::write_bytes() {
  next_bytes_ = env_.loop.now() + kBytesPeriod;
  const TransportCounters& counters = transport_->counters();
  EventRecord bytes{.event = EventKind::kBytes,
                    .sent = counters.sent_bytes - bytes_written_[0],
                    .received = counters.received_bytes - bytes_written_[1]};
  if (counters.relayed_bytes > bytes_written_[2]) bytes.relayed = counters.relayed_bytes - bytes_written_[2];
  write(bytes_event(std::move(bytes), env_.loop.take_longest_callback()));
  bytes_written_[0] = counters.sent_bytes;
  bytes_written_[1] = counters.received_bytes;
  bytes_written_[2] = counters.relayed_bytes;
}

// ---- the end ----

void Launch::on_over(std::optional<Error> error) {
  if (transport_) write_bytes();
  env_.loop.cancel(timer_);
  for (const std::string& line : losses_.take_rest()) owner_.on_notice(line);
  if (announcer_ && !ended()) announcer_->withdraw();  // the word of the end stays there until it expires
  owner_.on_finished(summary(), std::move(error));
}

RunSummary Launch::summary() const {
  RunSummary result;
  end_->add_to(result);
  result.rounds_abandoned = rounds_abandoned_;
  result.committed = book().committed();
  result.unfinished = book().open();
  result.issued = result.committed + result.unfinished;
  result.lost = book().lost().pairs();
  const RoundTally& tally = authority_->tally();
  result.rounds = tally.rounds;
  result.taken_back = tally.taken_back;
  result.faults = tally.faults;
  for (const auto& [of, microbatches] : tally.shares) result.shares.push_back({of.first, of.second, microbatches});
  for (const auto& [of, waits] : tally.waits)
    result.waits.push_back({of.first, of.second, waits.rounds, seconds_of(waits.time)});
  for (const auto& [of, pairs] : book().lost().lines())
    result.losses.push_back({std::get<0>(of), std::get<1>(of), std::get<2>(of), pairs});
  result.run_targets = book().committed_targets();
  result.end_targets = options_.config.end_targets();
  result.delay = delays_.largest();
  result.loss_bound_microbatches = options_.config.id_window();
  result.loss_bound_targets = result.loss_bound_microbatches * options_.config.targets_per_microbatch();
  result.full_in_flight_share = full_in_flight_share(options_.config, result.run_targets);
  if (!trainer_) return result;  // not started
  result.asked_again = trainer_->courier_counters().branches;
  result.acks_gone = trainer_->acks_gone();
  return result;
}

std::string Launch::parked_text() const {
  const std::string text = shoal::parked_text(authority_->status(), authority_->members());
  if (!text.empty() || end_->finishing() || book().next()) return text;
  return "waiting: no more microbatches may be in flight before " + book().waiting_for() + " is done with";
}

}  // namespace shoal
