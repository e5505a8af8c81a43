#pragma once
// Where work happens that a loop may not wait for: one job after the other, in the order given. Production: a thread
// (common/os/work_thread.h). Simulation: virtual time (sim/sim_device.h). A peer has two: its device's, in whose jobs
// alone the executor computes, and one "aside" for what goes through large memory and waits for no computing, a round's
// arrays too (sync/outer_rule.h).
#include <cstdint>
#include <functional>
#include <string_view>

#include "common/time.h"

namespace shoal {

// Jobs of one kind take about the same time: a device hangs whose job takes several times the longest of its kind, and
// the first of each heavy kind is waited for longer (job_times.h, authority/patience.h).
enum class WorkKind : std::uint8_t {
  kForward,
  kEvaluate,
  kBackward,
  kUndo,
  kWrite,     // an inner step
  kShift,     // of the parameters, after a round
  kRelease,   // of graphs
  kSnapshot,  // of what a round is about
  kCommit,
  kAbandon,
  kBuild,  // the executor
  kSeed,   // the first parameters
  kLoad,   // a state that came, or was kept
  kImage,  // of the state, for others or for the next session
  kDrop,   // the executor
  kText,   // places of a reader's text
  kAside,  // never on the device: what a round makes of arrays, chunks of a state that is fetched
};
inline constexpr std::size_t kWorkKinds = 17;
std::string_view name_of(WorkKind task);  // "forward"

// Thread: run() on the loop; `job` runs elsewhere, `done` on the loop afterwards.
class WorkQueue {
 public:
  virtual ~WorkQueue() = default;
  virtual void run(WorkKind task, std::function<void()> job, std::function<void()> done) = 0;
  // For how long so far its jobs were ready to work and had no processor, since others had it. Only rises. What passed
  // less this is the time that a job could work, by which alone it is judged. Thread: loop.
  virtual Duration starved() { return {}; }
};

}  // namespace shoal
