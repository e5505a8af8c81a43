#pragma once
// How many microbatches a stage can hold in a given memory. Pure; thread-safe. Estimates, from above.
#include <cstdint>

#include "common/result.h"
#include "runtime/config/config.h"
#include "stages/stage_spec.h"

namespace shoal {

inline constexpr std::size_t kCreditsMax = 64;

// Bytes of one stage's arrays that live all the time: two parameter buffers, anchor, moments, two accumulators,
// snapshot, candidate and outer state, the scratch gradient.
std::uint64_t stage_bytes(const StageSpec& spec);
// Bytes that one entry keeps: its kept graph (Korthikanti et al. 2022, section 4.1, without the attention matrix and in
// fp32: 68 B T d a layer), what it was sent and sends, on the last stage the logits and their softmax.
std::uint64_t entry_bytes(const StageSpec& spec, std::uint32_t sequences);

// Between 2 and kCreditsMax. ERRORS: kTooLarge (the stage and two entries do not fit: says what would).
Result<std::size_t> credits_within(std::uint64_t memory_bytes, const RunConfig& config, const StageSpec& spec);

}  // namespace shoal
