#pragma once
// How many microbatches a stage can hold in a given memory. Pure; thread-safe. Estimates, from above.
#include <cstdint>
#include <span>

#include "common/result.h"
#include "runtime/config/config.h"
#include "stages/stage_spec.h"

namespace shoal {

inline constexpr std::size_t kCreditsUsual = 16, kCreditsMax = 64;

// Bytes of one stage's arrays where most of them live at once, 60 a parameter. All the time: two parameter buffers,
// anchor, two moments, the outer momentum, two accumulators. While a round is prepared: snapshot or candidate moments,
// candidate, its own payload or candidate outer momentum, the parts of others, their sum. Beside it: the scratch
// gradient of a backward, and the image that is made for a joiner or for --save. Not in it: a second image, for a
// member that fetches the version before (8 bytes a parameter; 12 with allreduce). With adapters the parameters are
// theirs, and 8 bytes a parameter of the base come beside it: the base, and its image while that comes. With
// [compute] dtype = "bf16" 6 bytes more: copies of both parameter buffers, and of the anchor while it is evaluated; of
// a base 2 more. Where graphs are made again ([compute] recompute), that of one microbatch.
std::uint64_t stage_bytes(const RunConfig& config, const StageSpec& spec);
// What the last stage takes once for its loss: a piece of logits and its softmax, and the head's gradient as it is made
// and as it is handed on (stages/chunked_loss.h). Its backward follows its forward at once.
std::uint64_t loss_bytes(const RunConfig& config, const StageSpec& spec);
// Bytes that one entry keeps: its graph, unless that is made again, as the family's row says (in bf16 all of it but
// the residual stream, twice the width, is half as large), and what it was sent and sends.
std::uint64_t entry_bytes(const RunConfig& config, const StageSpec& spec);

// What codecs of differences may keep, both directions: [wire] base_mib of each edge that has one.
std::uint64_t bases_bytes(const RunConfig& config, const StageSpec& spec);

// A process's own, without any stage: libtorch, sockets, buffers.
inline constexpr std::uint64_t kProgramBytes = std::uint64_t{256} << 20;
// Bytes of the whole process that serves `spec` with so many credits, of which it holds no more entries than the run
// has microbatches in flight. 0 where the executor is not torch's, whose arrays the manifest does not tell.
std::uint64_t process_bytes(const RunConfig& config, const StageSpec& spec, std::size_t credits);

// What one process that trains all stages, one microbatch at a time, takes beside their arrays. Where graphs are made
// again it has one at a time, the largest. REQUIRES: a stage at least.
std::uint64_t solo_bytes(const RunConfig& config, std::span<const StageSpec> specs);

// Where nobody bounds the memory: one replica's share of what the run has in flight, kCreditsUsual to kCreditsMax. A
// first stage holds a microbatch for as long as it is in flight, so with fewer the rest would wait.
std::size_t usual_credits(const RunConfig& config);

// Between 2 and kCreditsMax. ERRORS: kTooLarge (the stage and two entries do not fit: says what would).
Result<std::size_t> credits_within(std::uint64_t memory_bytes, const RunConfig& config, const StageSpec& spec);

}  // namespace shoal
