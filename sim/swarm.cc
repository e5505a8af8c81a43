#include "sim/swarm.h"

#include <cmath>

#include "stages/integer_executor.h"

namespace shoal {
namespace {

constexpr char kRunFolder[] = "run";

KeyPair key_of(std::uint64_t seed) {
  std::array<std::uint8_t, 32> bytes{};
  Rng rng(seed);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
  return KeyPair::from_seed(bytes);
}

Result<std::unique_ptr<StageExecutor>> make_integer_executor(const StageSpec& spec) {
  return std::unique_ptr<StageExecutor>(std::make_unique<IntegerExecutor>(spec));
}

std::unique_ptr<Samples> make_samples(const RunConfig& config, Rng rng) {
  Result<TokenFile> file = make_error(ErrorCode::kMissing, "");
  while (!file.ok()) {  // by chance it may begin as a file of some other kind does
    std::vector<std::uint8_t> text(64 * config.targets_per_microbatch() + 1);
    for (auto& byte : text) byte = static_cast<std::uint8_t>(rng.below(config.model.vocabulary));
    file = TokenFile::from_bytes(Bytes::from_vector(std::move(text)), DType::kU8, config.model.vocabulary, "a text");
  }
  auto samples = Samples::cut(std::move(file).value(), config.data.sequences, config.model.positions);
  return std::make_unique<Samples>(std::move(samples).value());
}
}  // namespace

RunConfig small_config(RuleId rule, std::uint16_t stages, std::uint64_t microbatches) {
  RunConfig config;
  config.run = {"simulated", 7};
  config.model = {{.layers = stages, .dim = 8, .heads = 2, .positions = 4, .vocabulary = 256}, {}, {}};
  config.data.sequences = 2;
  config.data.validation_samples = 4;
  config.optimizer = {1e-3, 0.9, 0.95, 1e-8, 0.1, 1.0};
  config.schedule.min_lr_factor = 0.1;
  config.pipeline.stages = stages;
  config.pipeline.replicas = 2;
  config.pipeline.in_flight = 2u * stages * 2u;
  config.pipeline.in_flight_ramp = std::vector<double>{};  // many under way from the beginning: more can go wrong
  config.sync.rule = rule;
  config.sync.inner_batch = 3 * config.targets_per_microbatch();
  config.sync.inner_steps = 2;
  config.sync.outer_lr = 0.7;
  config.sync.outer_momentum = 0.9;
  config.sync.microbatches_per_step = 8;
  config.sync.round_cap_s = 5;
  config.wire.base_mib = 1;
  config.timing = {4, 10};
  config.executor.kind = ExecutorKind::kInteger;
  config.end.tokens = microbatches * config.targets_per_microbatch();
  return config;
}

class Swarm::Recorder final : public EventLog {
 public:
  Recorder(std::vector<SimEvent>* all, const SimLoop& loop, EventIdentity identity, std::string* file, EventLevel level,
           const HostedPeer* process)
      : all_(all), loop_(loop), identity_(std::move(identity)), file_(file), level_(level), process_(process) {}
  void write(const EventRecord& record) override {
    if (all_ != nullptr) {
      all_->push_back({record, loop_.now(), identity_.session, stamp_of(record)});
      if (!record.stage) all_->back().stage = identity_.stage;
    }
    const auto kept = file_ == nullptr ? std::nullopt : at_level(record, level_);
    if (!kept) return;
    const auto since_start = std::chrono::duration_cast<WallTime::duration>(loop_.now().time_since_epoch());
    *file_ += event_line(identity_, WallTime(since_start), *kept);
  }
  void set_session(const Session& session) override {
    identity_.session = session;
    identity_.stage.reset();
  }
  void set_stage(StageId stage) override { identity_.stage = stage; }

 private:
  std::optional<WeightStamp> stamp_of(const EventRecord& record) const {
    if (process_ == nullptr || record.event != EventKind::kCounted || !record.entry_name) return std::nullopt;
    const Entry* entry = process_->peer->stage_peer()->ledger().entries().find(record.entry_name->serial);
    return entry == nullptr ? std::nullopt : std::optional(entry->stamp);
  }

  std::vector<SimEvent>* all_;  // null: not kept
  const SimLoop& loop_;
  EventIdentity identity_;
  std::string* file_;
  EventLevel level_;
  const HostedPeer* process_;
};

// A process that comes back goes on with its file.
std::unique_ptr<EventLog> Swarm::make_recorder(const std::string& role, const PeerId& peer, const HostedPeer* process) {
  std::string* file = options_.evidence == nullptr ? nullptr : &(*options_.evidence)[role + "-" + short_name(peer)];
  return std::make_unique<Recorder>(options_.keep_events ? &all_events_ : nullptr, loop_,
                                    EventIdentity{role, RunId{run_key_.id().bytes}, peer, {}, {}}, file,
                                    options_.evidence_level, process);
}

class Swarm::LaunchOwner final : public shoal::LaunchOwner {
 public:
  explicit LaunchOwner(Swarm& swarm) : swarm_(swarm) {}
  void on_train_line(const TrainLine&) override {}
  void on_notice(const std::string& line) override { swarm_.notices_.push_back(line); }
  void on_states(std::map<std::uint16_t, Bytes> states, std::function<void(Status)> saved) override {
    swarm_.states_ = std::move(states);
    saved(swarm_.save_answer_());
  }
  void on_finished(const RunSummary& summary, std::optional<Error> error) override {
    swarm_.summary_ = summary;
    swarm_.launch_error_ = std::move(error);
  }

 private:
  Swarm& swarm_;
};

class Swarm::PeerOwner final : public Peer::Owner {
 public:
  explicit PeerOwner(HostedPeer& process) : process_(process) {}
  void on_finished(const std::string&, std::optional<Error> error) override {
    process_.finished = true;
    process_.error = std::move(error);
  }
  void on_notice(const std::string& line) override { process_.notices.push_back(line); }
  void on_paused(const PeerPause& pause) override { process_.pauses.push_back(pause); }

 private:
  HostedPeer& process_;
};

class Swarm::StandbyOwner final : public Standby::Owner {
 public:
  StandbyOwner(Swarm& swarm, HostedStandby& process) : swarm_(swarm), process_(process) {}
  void on_waiting(const std::string& why) override { process_.waits = why; }
  void on_warning(const std::string& line) override { process_.warnings.push_back(line); }
  void on_turn(RunLock lock) override { swarm_.take_turn(process_, std::move(lock)); }
  void on_failed(const Error& error) override { process_.error = error; }

 private:
  Swarm& swarm_;
  HostedStandby& process_;
};

Swarm::Swarm(SwarmOptions options)
    : options_(std::move(options)),
      rng_(options_.seed),
      network_(loop_, rng_.fork("network")),
      dht_(loop_, options_.seed),
      disk_(options_.seed),
      run_key_(key_of(options_.seed ^ 0xa07)),
      samples_(make_samples(options_.config, rng_.fork("text"))) {
  network_.set_default_shape(options_.shape);
  network_.relays().set_listed(run_key_.id(), joined_by_list(*this));
  if (options_.reach.home_launch) network_.nats().set(kSimLaunchAddress, sim_home("launch's home", "192.168.1.2:1"));
  disk_.set_sync_delay(40ms);  // a slow disk: what left before the log was durable shows
  SHOAL_CHECK(start_launch(false).ok());
  for (std::uint16_t replica = 0; replica < options_.replicas; ++replica)
    for (std::uint16_t stage = 0; stage < options_.stages; ++stage) add_peer();
}

Swarm::~Swarm() {
  // Processes before what they stand on.
  for (auto& process : peers_) {
    process->peer.reset();
    process->storage.reset();
    process->directory.reset();
  }
  launch_.reset();
  launch_directory_.reset();
  lock_.reset();
}

Status Swarm::start_launch(bool resume, std::optional<RunLock> lock) {
  SimHost& host = network_.add_host(kSimLaunchAddress, options_.shape);
  const auto& admitted = options_.config.admission.keys;  // empty: open
  launch_wire_ = network_.make_wire(run_key_.id(), kSimLaunchAddress, {admitted.begin(), admitted.end()});
  begin_relay(network_, options_);
  if (options_.reach.home_launch) launch_wire_->be_called_at({relay_of(options_)});
  storage_ = std::make_unique<SimStorage>(host.loop(), disk_);
  if (!lock) {
    SHOAL_ASSIGN(lock, RunLock::take(*storage_, kRunFolder, "launch"));
  }
  lock_ = std::move(lock);
  launch_aside_ = std::make_unique<SimDevice>(host.loop(), options_.pace);
  summary_.reset();
  launch_error_.reset();
  launch_directory_ = make_directory(host.loop());
  launch_events_ = make_recorder("trainer", run_key_.id(), nullptr);
  launch_owner_ = std::make_unique<LaunchOwner>(*this);
  LaunchOptions options{.config = options_.config,
                        .key = run_key_,
                        .folder = kRunFolder,
                        .resume = resume,
                        .whereabouts = {{launch_contact(options_)}},
                        .relays = relays_of(options_),
                        .save = options_.save,
                        .round_budget = options_.round_budget,
                        .log_bytes_max = options_.log_bytes.max,
                        .log_compact_bytes = options_.log_bytes.compact};
  auto launch = Launch::open(std::move(options),
                             LaunchEnvironment{.loop = host.loop(),
                                               .wire = *launch_wire_,
                                               .storage = *storage_,
                                               .events = *launch_events_,
                                               .samples = *samples_,
                                               .rng = rng_.fork("launch" + std::to_string(starts_++)),
                                               .directory = launch_directory_.get(),
                                               .run_aside =
                                                   [aside = launch_aside_.get()](auto job, auto done) {
                                                     aside->run(WorkKind::kAside, std::move(job), std::move(done));
                                                   },
                                               .code = options_.code,
                                               .first = options_.first},
                             *launch_owner_);
  if (!launch.ok()) {
    end_launch_process(false);
    return launch.error();
  }
  launch_ = *std::move(launch);
  if (options_.finish_at_once) launch_->finish("stopped before its start");
  launch_->start();
  if (options_.standby) add_standby();
  return {};
}

std::unique_ptr<PeerDirectory> Swarm::make_directory(EventLoop& loop) {
  if (!options_.dht) return nullptr;
  return make_sim_directory(dht_, loop, nullptr,
                            {.run = RunId{run_key_.id().bytes}, .bootstrap = {}, .cache_path = {}, .seed = ++starts_});
}

void Swarm::end_launch_process(bool silent) {
  network_.kill(kSimLaunchAddress, silent);
  storage_->die();
  launch_.reset();
  launch_aside_.reset();
  launch_directory_.reset();
  launch_wire_.reset();
  lock_.reset();
  storage_.reset();
}

void Swarm::kill_launch(bool machine) {
  end_launch_process(machine);
  standbys_.clear();
  disk_.power_lost();
}

void Swarm::freeze_launch(bool frozen) {
  frozen ? network_.freeze(kSimLaunchAddress) : network_.resume(kSimLaunchAddress);
}

void Swarm::kill_launch_process() {
  end_launch_process(false);
  disk_.process_died();
}

void Swarm::resume_launch() { SHOAL_CHECK(start_launch(true).ok()); }

Status Swarm::try_resume_launch() { return start_launch(true); }

void Swarm::add_standby() {
  standbys_.push_back(std::make_unique<HostedStandby>());
  HostedStandby& process = *standbys_.back();
  process.storage = std::make_unique<SimStorage>(loop_, disk_);
  process.owner = std::make_unique<StandbyOwner>(*this, process);
  process.standby = std::make_unique<Standby>(loop_, *process.storage, kRunFolder,
                                              "standby " + std::to_string(standbys_.size() - 1), *process.owner);
  process.standby->start();
}

// Its process goes on as the launching process.
void Swarm::take_turn(HostedStandby& process, RunLock lock) {
  process.had_turn = true;
  if (launch_ != nullptr) {
    process.error = make_error(ErrorCode::kStale, "the run was taken from a process that lives");
    return;
  }
  if (const Status begun = start_launch(true, std::move(lock)); !begun.ok()) process.error = begun.error();
  if (!process.error) ++takeovers_;
}

KeyPair Swarm::peer_key(std::uint64_t seed, std::size_t index) { return key_of(seed * 1000 + index + 1); }

SimPace Swarm::pace_of(std::size_t index) const {
  if (options_.unlike <= 1) return options_.pace;
  Rng draw = Rng(options_.seed).fork("unlike" + std::to_string(index));
  return slowed(options_.pace, std::pow(options_.unlike, draw.uniform()));  // evenly over the orders of magnitude
}

std::size_t Swarm::add_peer() {
  const std::size_t index = peers_.size();
  peers_.push_back(std::unique_ptr<HostedPeer>(new HostedPeer{.key = peer_key(options_.seed, index),
                                                              .address = "peer" + std::to_string(index) + ":1",
                                                              .pace = pace_of(index)}));
  HostedPeer& process = *peers_.back();
  const SimNat nat = nat_of(options_, index);
  process.told = nat.inner.empty() ? process.address : nat.inner;
  if (!nat.dialable()) network_.nats().set(process.address, nat);
  if (options_.reach.unreachable > 0) process.wish = StageId(static_cast<std::uint16_t>(index % options_.stages));
  start_peer(process);
  return index;
}

void Swarm::start_peer(HostedPeer& process) {
  SimHost& host = network_.add_host(process.address, options_.shape);
  process.alive = true;
  process.frozen = process.finished = false;
  process.error.reset();
  process.wire = network_.make_wire(process.key.id(), process.address);
  if (options_.wires) process.wire = options_.wires(process.key.id(), std::move(process.wire));
  process.device = std::make_unique<SimDevice>(host.loop(), process.pace);
  process.aside = std::make_unique<SimDevice>(host.loop(), process.pace);
  process.events = make_recorder("peer", process.key.id(), &process);
  process.owner = std::make_unique<PeerOwner>(process);
  process.directory = make_directory(host.loop());
  if (options_.checkpoints) {
    if (!process.disk) process.disk = std::make_unique<SimDisk>(options_.seed * 1000 + starts_);
    process.storage = std::make_unique<SimStorage>(host.loop(), *process.disk);
  }
  PeerOptions options{.key = process.key,
                      .run = RunId{run_key_.id().bytes},
                      .authority = {{launch_contact(options_)}},
                      .whereabouts = {{process.told}},
                      .wish = process.wish,
                      .device = "simulated",
                      .on_processor = options_.on_processor,
                      .credits = options_.credits};
  if (!options_.base_folder.empty()) options.base_folder = options_.base_folder + "/" + process.address;
  if (options_.checkpoints) options.checkpoint_folders = {"home"};
  process.peer = std::make_unique<Peer>(
      std::move(options),
      PeerEnvironment{.loop = host.loop(),
                      .wire = *process.wire,
                      .device = *process.device,
                      .aside = *process.aside,
                      .events = *process.events,
                      .factory = options_.factory ? options_.factory : make_integer_executor,
                      .rng = rng_.fork("peer" + std::to_string(starts_++)),
                      .directory = process.directory ? process.directory.get() : options_.directory,
                      .deltas = options_.deltas,
                      .storage = process.storage.get()},
      *process.owner);
  process.peer->start();
}

void Swarm::kill_peer(std::size_t index, bool machine) {
  HostedPeer& process = *peers_.at(index);
  if (!process.alive) return;
  network_.kill(process.address, machine);
  process.alive = process.frozen = false;
  if (process.storage) process.storage->die();
  process.peer.reset();
  process.storage.reset();
  if (process.disk) machine ? process.disk->power_lost() : process.disk->process_died();
  process.directory.reset();
  process.aside.reset();
  process.device.reset();
  process.wire.reset();
}

void Swarm::freeze_peer(std::size_t index) {
  HostedPeer& process = *peers_.at(index);
  if (!process.alive || process.frozen) return;
  process.frozen = true;
  network_.freeze(process.address);
}

void Swarm::resume_peer(std::size_t index) {
  HostedPeer& process = *peers_.at(index);
  if (!process.frozen) return;
  process.frozen = false;
  network_.resume(process.address);
}

void Swarm::restart_peer(std::size_t index) {
  kill_peer(index);
  start_peer(*peers_.at(index));
}

void Swarm::cut(std::size_t a, std::size_t b) { network_.cut(peers_.at(a)->address, peers_.at(b)->address); }

bool Swarm::run_to_end(Duration limit) {
  return loop_.run_until_true(
      [this] {
        if (!summary_) return false;
        for (const auto& process : peers_)
          if (process->alive && !process->frozen && !process->finished) return false;
        return true;
      },
      loop_.now() + limit);
}

}  // namespace shoal
