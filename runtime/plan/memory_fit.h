#pragma once
// Whether a stage fits into the memory that is left, before anything of it is made or fetched: what does not fit is
// ended by the kernel minutes later, and without a word. Pure; thread-safe. By stage_memory.h, from above.
#include <cstdint>
#include <optional>
#include <string>

#include "common/result.h"
#include "runtime/config/config.h"
#include "runtime/plan/stage_memory.h"
#include "stages/stage_spec.h"

namespace shoal {

// As many of `credits` as the process has room for when it may come to `free_bytes`, at least kCreditsLeast; all of
// them where the executor is not torch's. ERRORS: kTooLarge (the stage and kCreditsLeast entries do not fit: says what
// they need, what is there, and what would fit).
Result<std::size_t> credits_that_fit(std::uint64_t free_bytes, std::size_t credits, const RunConfig& config,
                                     const StageSpec& spec, std::uint64_t program_bytes = kProgramBytes);

// What the process needs that serves `spec` with so many credits, and what it has, if that is known: for people.
// Empty where the executor is not torch's.
std::string needs_text(const RunConfig& config, const StageSpec& spec, std::size_t credits, std::uint64_t program_bytes,
                       std::optional<std::uint64_t> free_bytes);

// How many microbatches at a time a peer takes, what waits of their forwards, and what is said of that (needs_text).
struct Room {
  std::size_t credits = 0;
  Recompute recompute = Recompute::kNone;
  std::string text{};
};
// `allowed_bytes`: as credits_within, not 0; else as credits_that_fit where `free_bytes` is known; else `credits`.
//
// [compute] recompute = "auto": none, where it has room for `credits`, or for as many as the others have. Else that of
// the others with the most room, and where both have as much, the smaller one. Where nothing bounds the memory: none.
Result<Room> room_for(const RunConfig& config, const StageSpec& spec, std::size_t credits, std::uint64_t allowed_bytes,
                      std::uint64_t program_bytes, std::optional<std::uint64_t> free_bytes);

// Bytes of the whole process with kCreditsLeast, however little the run lets wait of a forward.
std::uint64_t least_bytes(const RunConfig& config, const StageSpec& spec, std::uint64_t program_bytes = kProgramBytes);

// Into how few stages, of balanced cost, the model must be cut so that a peer with so much memory can serve any. None:
// not even a layer each would do.
std::optional<std::uint16_t> stages_within(std::uint64_t memory_bytes, const RunConfig& config,
                                           std::uint64_t program_bytes = kProgramBytes);

}  // namespace shoal
