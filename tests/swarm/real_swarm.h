#pragma once
// A whole run over real sockets in one test process: the launching side and stages x replicas peers, each with a loop
// thread, a device thread and a wire of its own on loopback (CURVE on), logs on the disk, events in memory. The first
// microbatch is computed when every peer knows every other one.
//
// Thread: the test's. Waits have a deadline and end early with what they wait for.
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/os/file_storage.h"
#include "common/os/thread_loop.h"
#include "runtime/launch/launch.h"
#include "runtime/peer/peer.h"
#include "tests/common/scratch_folder.h"
#include "tests/swarm/mortal_wire.h"
#include "tests/swarm/recording_executor.h"

namespace shoal {

// The first peer of `stage` that gets there is gone from then on: its sockets close, nobody is told.
struct Death {
  enum class Place : std::uint8_t { kGradientArrives, kAfterForward };
  StageId stage;
  Place place = Place::kGradientArrives;
};

// The first peer of `stage` lies from the `honest`-th time on: every value that it hands on is 1e30, or every value
// that it brings to rounds is 1e4.
struct Poison {
  enum class Where : std::uint8_t { kHandedOn, kRounds };
  StageId stage;
  std::uint64_t honest = 0;
  Where where = Where::kHandedOn;
};

// One thread each: a small model of the product's executor, rule allreduce, mode drain, and its text in `folder`.
RunConfig drained_config(const ScratchFolder& folder, std::uint64_t microbatches_per_step, std::uint64_t steps);
ExecutorFactory torch_on_cpu();

class RealSwarm {
 public:
  explicit RealSwarm(RunConfig config, std::optional<Death> death = std::nullopt,
                     std::optional<Poison> poison = std::nullopt);
  ~RealSwarm();

  // From the first join to END, which every living peer has heard. False, and why() says it: not in time, or a process
  // gave up.
  bool run(Duration limit);
  std::string why() const;

  // ---- after run() ----
  const std::vector<TrainLine>& lines() const { return lines_; }
  const GradientRecord& gradients() const { return gradients_; }
  const RunSummary& summary() const { return *summary_; }
  bool somebody_died() const { return struck_; }
  std::uint64_t poisoned() const { return poisoned_; }  // tensors or windows
  // Sum of the count tags of the microbatches that were issued in `step`.
  CountTag issued_tag(std::uint64_t step) const;

 private:
  struct HostedPeer;
  class LaunchOwner;
  class PeerOwner;
  class MemoryEvents;
  void start_launch();
  void start_peer();
  void make_peer(HostedPeer& process);
  ExecutorFactory factory_of(HostedPeer& process);
  Changes poison_of(StageId stage);
  void die(HostedPeer& process);
  enum class Gate : std::uint8_t { kLastStage, kForward };
  void open(Gate gate);
  void wait_for(Gate gate);  // on a device thread
  bool all_know(std::uint16_t stages);
  bool all_over();
  void note(const std::string& line);
  void trouble(const std::string& line);  // run() fails with it
  bool troubled() const;
  bool eventually(const std::function<bool()>& holds, TimePoint deadline);

  RunConfig config_;
  std::optional<Death> death_;
  std::atomic<bool> struck_{false};
  std::optional<Poison> poison_;
  std::atomic<bool> poisoner_made_{false};
  std::atomic<std::uint64_t> poisoned_{0};
  KeyPair run_key_;
  ScratchFolder folder_;
  std::optional<Samples> samples_;
  GradientRecord gradients_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool open_[2] = {false, false};  // gates; guarded by mutex_, as what follows
  std::vector<TrainLine> lines_;
  std::vector<EventRecord> events_;
  std::vector<std::string> notices_, troubles_;
  std::optional<RunSummary> summary_;

  std::string launch_address_;
  std::unique_ptr<LaunchOwner> launch_owner_;
  std::unique_ptr<EventLog> launch_events_;
  std::unique_ptr<FileStorage> storage_;
  std::unique_ptr<Wire> launch_wire_;
  std::unique_ptr<Launch> launch_;
  std::unique_ptr<LoopThread> launch_thread_;  // all of the five live on it
  std::vector<std::unique_ptr<HostedPeer>> peers_;
};

}  // namespace shoal
