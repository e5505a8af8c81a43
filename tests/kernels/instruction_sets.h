#pragma once
// The instruction sets that the Highway variants are compiled for, and a choice among them.
#include <hwy/targets.h>

#include <cstdint>
#include <vector>

namespace shoal {

// Those that this machine runs, from the widest to the narrowest: one bit of HWY_TARGETS each.
inline std::vector<std::int64_t> instruction_sets() {
  std::vector<std::int64_t> all;
  for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1)
    all.push_back(left & -left);
  return all;
}

// From now on the whole process; 0: the widest again. Thread: while no other one computes.
inline void compute_with(std::int64_t instructions) {
  hwy::SetSupportedTargetsForTest(instructions);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace shoal
