#pragma once
// The `trainer` of every microbatch that a run trains on: who knows the run's key knows it, and it is the same after a
// restart. Its highest bit is 0; evaluations have it. Pure; thread: any.
#include "common/ids.h"

namespace shoal {

inline std::uint64_t trainer_id_of(const PeerId& run) { return mix64(std::hash<PeerId>{}(run)) & ~(1ull << 63); }
inline constexpr bool is_evaluation_id(std::uint64_t trainer) { return trainer >> 63 != 0; }

}  // namespace shoal
