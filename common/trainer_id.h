#pragma once
// The `trainer` of every microbatch that a run trains on: who knows the run's key knows it, and it is the same after a
// restart. Its highest bit is 0; evaluations have it. Pure; thread: any.
#include "common/ids.h"

namespace shoal {

inline std::uint64_t trainer_id_of(const PeerId& run) { return mix64(std::hash<PeerId>{}(run)) & ~(1ull << 63); }
// Passes that nothing is trained by run under an id of their own, another in each `life` of the process.
inline std::uint64_t evaluation_id_of(std::uint64_t trainer, std::uint64_t life) {
  return mix64(trainer, life) | (1ull << 63);
}
inline constexpr bool is_evaluation_id(std::uint64_t trainer) { return trainer >> 63 != 0; }

}  // namespace shoal
