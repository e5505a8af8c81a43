#pragma once
// Whether a stage fits into the memory that is left, before anything of it is made: what does not fit is ended by the
// kernel minutes later, and without a word. Pure; thread-safe. By the estimates of stage_memory.h, from above.
#include <cstdint>

#include "common/result.h"
#include "runtime/config/config.h"
#include "stages/stage_spec.h"

namespace shoal {

// As many of `credits` as the process has room for when it may come to `free_bytes`, at least kCreditsLeast; all of
// them where the executor is not torch's. ERRORS: kTooLarge (the stage and kCreditsLeast entries do not fit: says what
// they need and what is there).
inline constexpr std::size_t kCreditsLeast = 2;
Result<std::size_t> credits_that_fit(std::uint64_t free_bytes, std::size_t credits, const RunConfig& config,
                                     const StageSpec& spec);

}  // namespace shoal
