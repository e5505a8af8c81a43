#include "bench/loop_bench.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/check.h"
#include "common/log.h"
#include "common/os/file_storage.h"
#include "common/os/thread_loop.h"
#include "common/os/work_thread.h"
#include "demo/work_folder.h"
#include "runtime/launch/launch.h"
#include "runtime/peer/peer.h"
#include "stages/paced_executor.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {
namespace {

constexpr std::uint64_t kAimMs = 20;
constexpr Duration kPhaseTime = 600s;

// What all processes wrote of one phase.
struct Phase {
  struct Longest {
    std::uint64_t ms = 0;
    std::string callback;
    std::uint64_t computed_ms = 0;  // of the callback that used most of a processor
  };
  std::string name;
  std::map<std::string, Longest> longest;  // by process
  double seconds = 0;
};

class Notes {
 public:
  void write(const std::string& process, const EventRecord& record) {
    const std::lock_guard lock(mutex_);
    if (record.event == EventKind::kAnchor) ++anchors_[process];
    if (record.event == EventKind::kServing) ++serving_[process];
    if (record.event == EventKind::kEnd) ++ended_[process];
    if (!record.callbacks.longest_ms || phases_.empty()) return;
    Phase::Longest& longest = phases_.back().longest[process];
    if (*record.callbacks.longest_ms > longest.ms)
      longest.ms = *record.callbacks.longest_ms, longest.callback = record.callbacks.longest;
    longest.computed_ms = std::max(longest.computed_ms, record.callbacks.computed_ms.value_or(0));
  }
  void begin(const std::string& phase) {
    const std::lock_guard lock(mutex_);
    phases_.push_back({phase, {}, 0});
    began_ = monotonic_now();
    anchors_.clear();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    phases_.back().seconds = seconds_of(monotonic_now() - began_);
  }
  int anchors(const std::string& process) { return count(anchors_, process); }  // of this phase
  int serving(const std::string& process) { return count(serving_, process); }
  int ended(const std::string& process) { return count(ended_, process); }
  std::vector<Phase> phases() {
    const std::lock_guard lock(mutex_);
    return phases_;
  }

 private:
  int count(std::map<std::string, int>& counts, const std::string& process) {
    const std::lock_guard lock(mutex_);
    return counts[process];
  }
  std::mutex mutex_;
  std::vector<Phase> phases_;
  TimePoint began_;
  std::map<std::string, int> anchors_, serving_, ended_;
};

class NotingEvents final : public EventLog {
 public:
  NotingEvents(Notes& notes, std::string process) : notes_(notes), process_(std::move(process)) {}
  void write(const EventRecord& record) override { notes_.write(process_, record); }
  void set_session(const Session&) override {}
  void set_stage(StageId) override {}

 private:
  Notes& notes_;
  std::string process_;
};

struct QuietLaunchOwner final : LaunchOwner {
  void on_train_line(const TrainLine&) override {}
  void on_notice(const std::string&) override {}
  void on_states(std::map<std::uint16_t, Bytes>, std::function<void(Status)> saved) override { saved({}); }
  void on_finished(const RunSummary&, std::optional<Error>) override {}
};

struct QuietPeerOwner final : Peer::Owner {
  void on_finished(const std::string&, std::optional<Error> error) override {
    if (!error) return;
    std::fprintf(stderr, "shoal-bench loop: %s\n", error->message.c_str());
    failed = true;
  }
  void on_notice(const std::string&) override {}
  std::atomic<bool> failed{false};
};

KeyPair key_of(std::uint8_t first) {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = first;
  return KeyPair::from_seed(seed);
}

// A process of the run; its parts live on its loop.
struct Served {
  std::unique_ptr<EventLog> events;
  std::unique_ptr<Wire> wire;
  QuietPeerOwner owner;
  std::unique_ptr<WorkQueue> device, aside;
  std::unique_ptr<Peer> peer;
  LoopThread thread;
};

class LoopBench {
 public:
  LoopBench(const LoopBenchOptions& options, RunConfig config, std::string folder)
      : options_(options), config_(std::move(config)), folder_(std::move(folder)) {}
  ~LoopBench() {
    for (auto& peer : peers_) {
      peer->thread.call([&] {
        peer->peer.reset();
        peer->aside.reset();
        peer->device.reset();
        peer->wire.reset();
      });
      peer->thread.stop();
    }
    thread_.call([this] {
      launch_.reset();
      wire_.reset();
      storage_.reset();
    });
    thread_.stop();
  }

  Status run() {
    SHOAL_TRY(start_launch());
    notes_.begin("a peer begins and makes rounds alone");
    SHOAL_TRY(start_peer());
    SHOAL_TRY(until("two versions", [this] { return notes_.anchors("peer 0") >= 2; }));
    notes_.begin("another joins and fetches the state");
    SHOAL_TRY(start_peer());
    SHOAL_TRY(until("that it serves", [this] { return notes_.serving("peer 1") > 0; }));
    notes_.begin("rounds of both");
    SHOAL_TRY(until("two versions", [this] { return notes_.anchors("peer 0") >= 2 && notes_.anchors("peer 1") >= 2; }));
    notes_.begin("one leaves (Ctrl-C)");
    peers_[1]->thread.call([this] { peers_[1]->peer->leave(); });
    SHOAL_TRY(until("that it left", [this] { return notes_.ended("peer 1") > 0; }));
    return {};
  }
  std::vector<Phase> phases() { return notes_.phases(); }

 private:
  Status until(const std::string& what, const std::function<bool()>& holds) {
    for (const TimePoint limit = monotonic_now() + kPhaseTime; !holds(); std::this_thread::sleep_for(20ms))
      if (monotonic_now() > limit || failed()) return make_error(ErrorCode::kTimeout, "waited in vain for " + what);
    std::this_thread::sleep_for(1200ms);  // the bytes lines come every second
    notes_.end();
    return {};
  }

  bool failed() const {
    return std::any_of(peers_.begin(), peers_.end(), [](const auto& served) { return served->owner.failed.load(); });
  }

  Status start_launch() {
    SHOAL_ASSIGN(TokenFile file, TokenFile::from_bytes(Bytes::copy_of(std::string(100'000, 'a')), config_.token_dtype(),
                                                       config_.model.vocabulary, "text"));
    SHOAL_ASSIGN(Samples samples, Samples::cut(std::move(file), config_.data.sequences, config_.model.positions));
    samples_ = std::make_unique<Samples>(std::move(samples));
    Status started;
    thread_.call([&] { started = make_launch(); });
    return started;
  }
  Status make_launch() {
    EventLoop& loop = thread_.loop();
    events_ = std::make_unique<NotingEvents>(notes_, "launch");
    storage_ = std::make_unique<FileStorage>(loop);
    SHOAL_ASSIGN(auto wire, wire_of(loop, key_));
    address_ = wire->listening_address();
    wire_ = std::move(wire);
    LaunchOptions options{.config = config_, .key = key_, .folder = folder_, .whereabouts = {{address_}}};
    SHOAL_ASSIGN(launch_,
                 Launch::open(std::move(options),
                              LaunchEnvironment{loop, *wire_, *storage_, *events_, *samples_, Rng(91)}, owner_));
    launch_->start();
    return {};
  }

  Status start_peer() {
    peers_.push_back(std::make_unique<Served>());
    Status started;
    peers_.back()->thread.call([&] { started = make_peer(*peers_.back(), peers_.size() - 1); });
    return started;
  }
  Status make_peer(Served& served, std::size_t index) {
    EventLoop& loop = served.thread.loop();
    const KeyPair key = key_of(static_cast<std::uint8_t>(10 + index));
    served.events = std::make_unique<NotingEvents>(notes_, "peer " + std::to_string(index));
    SHOAL_ASSIGN(auto wire, wire_of(loop, key));
    PeerOptions options{.key = key,
                        .run = RunId{key_.id().bytes},
                        .authority = {{address_}},
                        .whereabouts = {{wire->listening_address()}},
                        .wish = {},
                        .device = "paced"};
    served.wire = std::move(wire);
    served.device = make_work_thread(loop);
    served.aside = make_work_thread(loop, "aside");
    PeerEnvironment environment{.loop = loop,
                                .wire = *served.wire,
                                .device = *served.device,
                                .aside = *served.aside,
                                .events = *served.events,
                                .factory = factory(),
                                .rng = Rng(200 + index)};
    served.peer = std::make_unique<Peer>(std::move(options), std::move(environment), served.owner);
    served.peer->start();
    return {};
  }
  ExecutorFactory factory() const {
    const ExecutorSection& section = config_.executor;
    const Pace pace{.forward = from_seconds(section.forward_ms / 1e3),
                    .backward = from_seconds(section.backward_ms / 1e3)};
    return [pace, floats = (section.state_mib << 20) /
                           sizeof(float)](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
      return {std::make_unique<PacedExecutor>(spec, pace, wait_asleep(), floats)};
    };
  }
  static Result<std::unique_ptr<ZmqWire>> wire_of(EventLoop& loop, const KeyPair& key) {
    return make_zmq_wire(loop, {.key = key, .listen = "127.0.0.1:0", .admission = Admission::kOpen, .admitted = {}});
  }

  const LoopBenchOptions options_;
  const RunConfig config_;
  const KeyPair key_ = key_of(1);
  std::string folder_, address_;
  Notes notes_;
  std::unique_ptr<Samples> samples_;
  std::unique_ptr<EventLog> events_;
  std::unique_ptr<FileStorage> storage_;
  std::unique_ptr<Wire> wire_;
  QuietLaunchOwner owner_;
  std::unique_ptr<Launch> launch_;
  LoopThread thread_;  // the launching side's
  std::vector<std::unique_ptr<Served>> peers_;
};

void print(const std::vector<Phase>& phases, const LoopBenchOptions& options) {
  if (!options.json)
    std::printf("longest callbacks, %llu MiB an array (aim: %llu ms)\n",
                static_cast<unsigned long long>(options.state_mib), static_cast<unsigned long long>(kAimMs));
  for (const Phase& phase : phases) {
    if (!options.json) std::printf("%s (%.1f s)\n", phase.name.c_str(), phase.seconds);
    for (const auto& [process, longest] : phase.longest) {
      if (options.json) {
        const nlohmann::ordered_json line = {{"schema", "shoal.bench.loop/1"},
                                             {"state_mib", options.state_mib},
                                             {"phase", phase.name},
                                             {"seconds", phase.seconds},
                                             {"process", process},
                                             {"longest_callback_ms", longest.ms},
                                             {"callback", longest.callback},
                                             {"computed_ms", longest.computed_ms},
                                             {"aim_ms", kAimMs}};
        std::printf("%s\n", line.dump().c_str());
      } else {
        std::printf("  %-8s %5llu ms, computed at most %llu ms  %s\n", process.c_str(),
                    static_cast<unsigned long long>(longest.ms), static_cast<unsigned long long>(longest.computed_ms),
                    longest.callback.c_str());
      }
    }
  }
}

}  // namespace

std::string loop_toml(const LoopBenchOptions& options) {
  return R"([run]
name = "loop"
seed = 7
[model]
layers = 1
dim = 8
heads = 2
positions = 4
[data]
path = "text"
sequences = 2
[pipeline]
in_flight = 4
[sync]
rule = "diloco"
inner_batch = 64
inner_steps = 2
[executor]
kind = "paced"
forward_ms = 50
backward_ms = 100
state_mib = )" +
         std::to_string(options.state_mib) + "\n";
}

Status run_loop_bench(const LoopBenchOptions& options) {
  set_log_level(LogLevel::kWarning);
  auto config = parse_config(loop_toml(options), "loop");
  SHOAL_CHECK(config.ok());
  SHOAL_ASSIGN(const WorkFolder folder, WorkFolder::make("loop"));
  LoopBench bench(options, *std::move(config), folder.path());
  const Status done = bench.run();
  print(bench.phases(), options);
  return done;
}

}  // namespace shoal
