#pragma once
// Where a peer's computing happens, seen from the loop: one job after the other, in the order given. The executor is
// touched inside jobs only. Production: a thread (make_device_thread). Simulation: virtual time (sim/sim_device.h).
// A peer has a second one, "aside", for what goes through large memory without the executor and waits for no computing.
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/event_loop.h"

namespace shoal {

// Jobs of one kind take about the same time: a device hangs whose job takes several times the longest of its kind, and
// the first of each heavy kind is waited for longer (job_times.h, sync/authority.h).
enum class DeviceTask : std::uint8_t {
  kForward,
  kEvaluate,
  kBackward,
  kUndo,
  kWrite,    // an inner step
  kShift,    // of the parameters, after a round
  kRelease,  // of graphs
  kContribute,
  kPrepare,
  kCommit,
  kAbandon,
  kBuild,  // the executor
  kSeed,   // the first parameters
  kLoad,   // a state that came, or was kept
  kImage,  // of the state, for others or for the next session
  kDrop,   // the executor
  kAside,  // never on the device: large parts of rounds, chunks of a state that is fetched
};
inline constexpr std::size_t kDeviceTasks = 17;
std::string_view name_of(DeviceTask task);  // "forward"

// Thread: run() on the loop; `job` runs on the device, `done` on the loop afterwards.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  virtual void run(DeviceTask task, std::function<void()> job, std::function<void()> done) = 0;
};

// Owns its thread; the destructor finishes the job that runs and drops the rest. REQUIRES: loop outlives it.
// `name` is the thread's, as top shows it.
std::unique_ptr<DeviceQueue> make_device_thread(EventLoop& loop, std::string name = "device");

}  // namespace shoal
