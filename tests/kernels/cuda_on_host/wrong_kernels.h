#pragma once
// Small kernels with one mistake each, and the same without it: what the fibers' judge must find, and what it must
// leave alone. All arrays are of the device.
#include <cstddef>
#include <string_view>

#include "common/result.h"

namespace shoal::cuda_on_host {

inline constexpr unsigned kBlockThreads = 64;  // two warps

enum class Mistake {
  kTail,             // writes one element behind the last
  kVectorTail,       // reads four where fewer are left
  kNoBarrier,        // writes again what another warp still reads
  kNoSyncWarp,       // reads what another lane has yet to write
  kNobodyWrote,      // reads shared memory that nothing wrote
  kBarrierInBranch,  // not every thread comes to __syncthreads
  kLeavesEarly,      // the last lanes are gone when the others shuffle
  kLaneTakesNoPart,  // reads from a lane outside of the mask
  kWrongLane,        // adds the wrong lanes
  kTwoBlocks,        // two blocks write one place
  kAlignment,        // reads four floats from where no vector begins
  kOrder,            // the sum depends on who comes first
};
inline constexpr Mistake kMistakes[] = {Mistake::kTail,        Mistake::kVectorTail,      Mistake::kNoBarrier,
                                        Mistake::kNoSyncWarp,  Mistake::kNobodyWrote,     Mistake::kBarrierInBranch,
                                        Mistake::kLeavesEarly, Mistake::kLaneTakesNoPart, Mistake::kWrongLane,
                                        Mistake::kTwoBlocks,   Mistake::kAlignment,       Mistake::kOrder};

// in (n) -> out (n), with blocks of kBlockThreads.
Status run_kernel(Mistake mistake, bool wrong, const float* in, std::size_t n, float* out);

}  // namespace shoal::cuda_on_host
