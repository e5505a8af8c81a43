#include "tests/swarm/real_swarm.h"

#include "common/log.h"
#include "common/os/work_thread.h"
#include "stages/torch_executor.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {
namespace {

KeyPair key_of(std::uint64_t seed) {
  std::array<std::uint8_t, 32> bytes{};
  Rng rng(seed);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
  return KeyPair::from_seed(bytes);
}

Result<std::unique_ptr<ZmqWire>> loopback_wire(EventLoop& loop, const KeyPair& key) {
  return make_zmq_wire(loop, {.key = key, .listen = "127.0.0.1:0", .admission = Admission::kOpen, .admitted = {}});
}

}  // namespace

RunConfig drained_config(const ScratchFolder& folder, std::uint64_t microbatches_per_step, std::uint64_t steps) {
  std::string text(20'000, ' ');
  Rng rng(11);
  for (std::size_t i = 0; i < text.size(); ++i)  // a letter depends on the one before: there is something to learn
    text[i] = static_cast<char>('a' + (i == 0 ? 0 : (text[i - 1] - 'a' + rng.below(3)) % 26));
  RunConfig config;
  config.run = {"drained", 5};
  config.model = {{.layers = 4, .dim = 32, .heads = 4, .positions = 16, .vocabulary = 256}, {}, {}};
  config.data.paths = {folder.write("text.bin", text)};
  config.data.sequences = 2;
  config.data.validation_samples = 2;
  config.optimizer = {1e-3, 0.9, 0.95, 1e-8, 0.1, 1.0};
  config.schedule.min_lr_factor = 0.1;
  config.pipeline.stages = 4;
  config.pipeline.replicas = 2;
  config.pipeline.in_flight = 16;
  config.sync.rule = RuleId::kAllreduce;
  config.sync.mode = SyncMode::kDrain;
  config.sync.inner_batch = config.targets_per_microbatch();
  config.sync.inner_steps = 1;
  config.sync.outer_lr = 0.7;  // of no use here, but a run has one
  config.sync.outer_momentum = 0.9;
  config.sync.microbatches_per_step = microbatches_per_step;
  config.wire.forward.codecs = config.wire.backward.codecs = {CodecId::kRaw};  // to be compared with one process
  config.timing = {1, 3};
  config.end.steps = steps;
  return config;
}

ExecutorFactory torch_on_cpu() {
  return [](const StageSpec& spec) { return make_torch_executor(spec, "cpu", 1); };
}

struct RealSwarm::HostedPeer {
  KeyPair key;
  std::atomic<int> stage{-1};  // what the authority gave it
  std::atomic<bool> over{false};
  std::unique_ptr<Peer::Owner> owner{};
  std::unique_ptr<EventLog> events{};
  std::string address{};
  std::unique_ptr<MortalWire> wire{};
  std::unique_ptr<WorkQueue> device{}, aside{};
  std::unique_ptr<Peer> peer{};
  std::unique_ptr<LoopThread> thread = std::make_unique<LoopThread>();  // the others live on it

  void end() {  // on the loop
    peer.reset();
    aside.reset();
    device.reset();
    wire.reset();
    over = true;
  }
};

class RealSwarm::MemoryEvents final : public EventLog {
 public:
  explicit MemoryEvents(RealSwarm& swarm) : swarm_(swarm) {}
  void write(const EventRecord& record) override {
    const std::lock_guard lock(swarm_.mutex_);
    swarm_.events_.push_back(record);
    swarm_.changed_.notify_all();
  }
  void set_session(const Session&) override {}
  void set_stage(StageId) override {}

 private:
  RealSwarm& swarm_;
};

class RealSwarm::LaunchOwner final : public shoal::LaunchOwner {
 public:
  explicit LaunchOwner(RealSwarm& swarm) : swarm_(swarm) {}
  void on_train_line(const TrainLine& line) override {
    const std::lock_guard lock(swarm_.mutex_);
    swarm_.lines_.push_back(line);
  }
  void on_notice(const std::string& line) override { log_info(line); }
  void on_states(std::map<std::uint16_t, Bytes>, std::function<void(Status)> saved) override { saved({}); }
  void on_finished(const RunSummary& summary, std::optional<Error> error) override {
    const std::lock_guard lock(swarm_.mutex_);
    swarm_.summary_ = summary;
    if (error) swarm_.troubles_.push_back("launch: " + error->message);
    swarm_.changed_.notify_all();
  }

 private:
  RealSwarm& swarm_;
};

class RealSwarm::PeerOwner final : public Peer::Owner {
 public:
  PeerOwner(RealSwarm& swarm, HostedPeer& process) : swarm_(swarm), process_(process) {}
  void on_finished(const std::string&, std::optional<Error> error) override {
    const std::lock_guard lock(swarm_.mutex_);
    process_.over = true;
    if (error) swarm_.troubles_.push_back("a peer of stage " + std::to_string(process_.stage) + ": " + error->message);
    swarm_.changed_.notify_all();
  }
  void on_notice(const std::string& line) override {
    swarm_.note("stage " + std::to_string(process_.stage) + ": " + line);
  }

 private:
  RealSwarm& swarm_;
  HostedPeer& process_;
};

RealSwarm::RealSwarm(RunConfig config, std::optional<Death> death, std::optional<Poison> poison)
    : config_(std::move(config)),
      death_(death),
      poison_(poison),
      run_key_(key_of(90)),
      launch_thread_(std::make_unique<LoopThread>()) {
  auto samples = Samples::open(config_.text_files());
  SHOAL_CHECK(samples.ok());
  samples_ = std::move(samples).value();
  launch_thread_->call([this] { start_launch(); });
}

RealSwarm::~RealSwarm() {
  open(Gate::kLastStage);
  open(Gate::kForward);
  for (auto& process : peers_) process->thread->call([&] { process->end(); });
  launch_thread_->call([this] {
    launch_.reset();
    launch_wire_.reset();
    storage_.reset();
  });
  for (auto& process : peers_) process->thread->stop();
  launch_thread_->stop();
}

void RealSwarm::start_launch() {
  EventLoop& loop = launch_thread_->loop();
  storage_ = std::make_unique<FileStorage>(loop);
  launch_events_ = std::make_unique<MemoryEvents>(*this);
  launch_owner_ = std::make_unique<LaunchOwner>(*this);
  auto wire = loopback_wire(loop, run_key_);
  if (!wire.ok()) return trouble("launch: " + wire.error().message);
  launch_address_ = (*wire)->listening_address();
  launch_wire_ = *std::move(wire);
  LaunchOptions options{.config = config_,
                        .key = run_key_,
                        .folder = folder_.path(),
                        .whereabouts = {{launch_address_}},
                        .round_budget = 30s};
  auto launch = Launch::open(
      std::move(options),
      LaunchEnvironment{loop, *launch_wire_, *storage_, *launch_events_, *samples_, Rng(91), nullptr}, *launch_owner_);
  if (!launch.ok()) return trouble("launch: " + launch.error().message);
  launch_ = std::move(launch).value();
  launch_->start();
}

void RealSwarm::start_peer() {
  peers_.push_back(std::unique_ptr<HostedPeer>(new HostedPeer{key_of(100 + peers_.size())}));
  HostedPeer& process = *peers_.back();
  process.thread->call([&] { make_peer(process); });
}

void RealSwarm::make_peer(HostedPeer& process) {
  EventLoop& loop = process.thread->loop();
  process.owner = std::make_unique<PeerOwner>(*this, process);
  process.events = std::make_unique<MemoryEvents>(*this);
  auto wire = loopback_wire(loop, process.key);
  if (!wire.ok()) return trouble("a peer: " + wire.error().message);
  process.address = (*wire)->listening_address();
  process.wire = std::make_unique<MortalWire>(*std::move(wire), [this, &process](const Message& message) {
    if (!death_ || death_->stage.value != process.stage || death_->place != Death::Place::kGradientArrives)
      return false;
    if (!std::holds_alternative<Gradient>(message) || struck_.exchange(true)) return false;
    die(process);
    return true;
  });
  process.device = make_work_thread(loop);
  process.aside = make_work_thread(loop, "aside");
  PeerOptions options{.key = process.key,
                      .run = RunId{run_key_.id().bytes},
                      .authority = {{launch_address_}},
                      .whereabouts = {{process.address}},
                      .wish = std::nullopt,
                      .device = "cpu"};
  const std::uint64_t seed = 200 + peers_.size();
  process.peer = std::make_unique<Peer>(std::move(options),
                                        PeerEnvironment{.loop = loop,
                                                        .wire = *process.wire,
                                                        .device = *process.device,
                                                        .aside = *process.aside,
                                                        .events = *process.events,
                                                        .factory = factory_of(process),
                                                        .rng = Rng(seed)},
                                        *process.owner);
  process.peer->start();
}

ExecutorFactory RealSwarm::factory_of(HostedPeer& process) {
  return [this, &process](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
    process.stage = spec.stage.value;
    if (spec.is_last()) wait_for(Gate::kLastStage);
    SHOAL_ASSIGN(auto executor, torch_on_cpu()(spec));
    ForwardHooks hooks;
    if (spec.is_first()) hooks.before = [this] { wait_for(Gate::kForward); };
    if (death_ && death_->stage == spec.stage && death_->place == Death::Place::kAfterForward)
      hooks.after = [this, &process] {
        if (struck_.exchange(true)) return;
        process.wire->die();
        die(process);
      };
    return make_recording_executor(std::move(executor), gradients_, std::move(hooks), poison_of(spec.stage));
  };
}

Changes RealSwarm::poison_of(StageId stage) {
  if (!poison_ || poison_->stage != stage || poisoner_made_.exchange(true)) return {};
  auto lies = [this, made = std::make_shared<std::uint64_t>(0)] {
    if ((*made)++ < poison_->honest) return false;
    ++poisoned_;
    return true;
  };
  if (poison_->where == Poison::Where::kRounds)
    return {.handed_on = {}, .gathered = [lies](std::span<float> window) {
              if (lies()) std::fill(window.begin(), window.end(), 1e4f);
            }};
  return {.handed_on =
              [lies](std::span<float> tensor) {
                if (lies()) std::ranges::fill(tensor, 1e30f);
              },
          .gathered = {}};
}

// Before anything else that its loop has to do.
void RealSwarm::die(HostedPeer& process) {
  process.thread->loop().post([this, &process] {
    process.end();
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
}

// Training begins when every stage has a peer, and from its first microbatch on all replicas shall take part: the last
// stage's peers begin to serve when all others do, and the first stage computes when the last one's are known.
bool RealSwarm::run(Duration limit) {
  const TimePoint deadline = monotonic_now() + limit;
  const std::uint16_t stages = config_.pipeline.stages;
  for (int i = 0; i < stages * config_.pipeline.replicas && !troubled(); ++i) start_peer();
  if (troubled()) return false;  // a process was not made
  if (!eventually([&] { return all_know(static_cast<std::uint16_t>(stages - 1)); }, deadline)) return false;
  open(Gate::kLastStage);
  if (!eventually([&] { return all_know(stages); }, deadline)) return false;
  open(Gate::kForward);
  return eventually([this] { return all_over(); }, deadline);
}

// The first `stages` stages have all their replicas in the list of every process that serves or is about to.
bool RealSwarm::all_know(std::uint16_t stages) {
  const auto full = [&](const Roster& roster) {
    for (std::uint16_t stage = 0; stage < stages; ++stage)
      if (roster.serving(StageId(stage)).size() < config_.pipeline.replicas) return false;
    return true;
  };
  bool all = false;
  launch_thread_->call([&] {
    const Trainer* trainer = launch_->trainer();
    all = trainer != nullptr && full(trainer->roster());
  });
  for (auto& process : peers_)
    process->thread->call([&] {
      if (const StagePeer* served = process->peer->stage_peer()) all = all && full(served->neighbours().roster());
    });
  return all;
}

bool RealSwarm::all_over() {
  const std::lock_guard lock(mutex_);
  return summary_ &&
         std::all_of(peers_.begin(), peers_.end(), [](const auto& process) { return process->over.load(); });
}

void RealSwarm::open(Gate gate) {
  const std::lock_guard lock(mutex_);
  open_[static_cast<std::size_t>(gate)] = true;
  changed_.notify_all();
}

void RealSwarm::wait_for(Gate gate) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return open_[static_cast<std::size_t>(gate)]; });
}

bool RealSwarm::eventually(const std::function<bool()>& holds, TimePoint deadline) {
  constexpr Duration kLook = 20ms;  // lists change without an event
  while (!holds()) {
    std::unique_lock lock(mutex_);
    if (!troubles_.empty() || monotonic_now() > deadline) return false;
    changed_.wait_for(lock, kLook);
  }
  const std::lock_guard lock(mutex_);
  return troubles_.empty();
}

void RealSwarm::trouble(const std::string& line) {
  const std::lock_guard lock(mutex_);
  troubles_.push_back(line);
}

bool RealSwarm::troubled() const {
  const std::lock_guard lock(mutex_);
  return !troubles_.empty();
}

void RealSwarm::note(const std::string& line) {
  const std::lock_guard lock(mutex_);
  notices_.push_back(line);
}

std::string RealSwarm::why() const {
  const std::lock_guard lock(mutex_);
  std::string text = summary_ ? "" : "the run has not ended; steps: " + std::to_string(lines_.size());
  for (const std::string& notice : notices_) text += "\n" + notice;
  for (const std::string& trouble : troubles_) text += "\n" + trouble;
  return text;
}

CountTag RealSwarm::issued_tag(std::uint64_t step) const {
  const std::lock_guard lock(mutex_);
  CountTag tag = 0;
  for (const EventRecord& record : events_)
    if (record.event == EventKind::kIssue && record.step == StepId(step)) tag += count_tag(*record.microbatch);
  return tag;
}

}  // namespace shoal
