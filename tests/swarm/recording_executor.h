#pragma once
// The executor it wraps, and beside it a record of what every step of rule allreduce was made of: at each flip the
// window that the step ends with, before it is cleared.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "stages/executor.h"

namespace shoal {

// What one replica brought to one step.
struct StepPart {
  std::uint64_t entries = 0;  // counted in the window and not undone
  CountTag tag = 0;
  std::vector<float> gradient;  // sum over targets, not divided; empty without entries
};

// Of a whole swarm. Thread: any.
class GradientRecord {
 public:
  void add(std::uint64_t step, StageId stage, StepPart part);
  // One part a replica that took the step.
  std::vector<StepPart> parts(std::uint64_t step, StageId stage) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::uint64_t, StageId>, std::vector<StepPart>> parts_;
};

// Around the calls of a forward, on the device thread.
struct ForwardHooks {
  std::function<void()> before, after;
};
// Of an executor that lies, on the device thread; what is empty changes nothing.
struct Changes {
  std::function<void(std::span<float>)> handed_on;  // what a forward or a backward hands on
  std::function<void(std::span<float>)> gathered;   // the window that a backward has added to: what a round is brought
};

// Steps are numbered by stamps: REQUIRES: the peer serves its stage from the first step on.
std::unique_ptr<StageExecutor> make_recording_executor(std::unique_ptr<StageExecutor> inner, GradientRecord& record,
                                                       ForwardHooks hooks, Changes changes = {});

}  // namespace shoal
