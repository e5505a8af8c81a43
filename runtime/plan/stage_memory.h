#pragma once
// What a stage takes of its device's memory, item by item, and how many microbatches fit beside it. What peers refuse,
// tell others and show goes by it, and `shoal plan` prints it. Pure; thread-safe.
//
// Arrays are those of all trained parameters, in fp32. All the time: the parameters and the buffer that is written
// next, two moments, two accumulators, the anchor, and with diloco its outer momentum. Beside passes, while a round's
// parts are put together: its own part, those of others, their sum and what it started from; while it is prepared: the
// sum, what it started from and two or three candidates. Not counted: a shift that still waits when the next round
// begins, of a member that made no step between. A backward's gradients grow to one array while its graph goes, so that
// of both the larger counts; where the layers' graphs are made one after the other, the first layer's stands beside the
// gradients of all others. An image, for a joiner, a checkpoint or --save, is made between two rounds and may still
// stand in the next.
#include <cstdint>
#include <span>
#include <string>

#include "common/result.h"
#include "runtime/config/config.h"
#include "stages/stage_spec.h"

namespace shoal {

inline constexpr std::size_t kCreditsUsual = 16, kCreditsMax = 64;
inline constexpr std::size_t kCreditsLeast = 2;  // with which a stage is served

struct StageMemory {          // bytes, but for the first
  std::uint64_t trained = 0;  // parameters
  // ---- all the time ----
  std::uint64_t parameters = 0, second_buffer = 0, moments = 0, accumulators = 0;
  std::uint64_t anchor = 0;  // and the outer momentum
  std::uint64_t narrow = 0;  // bf16 copies
  std::uint64_t base = 0;    // what adapters stand beside: twice, since it comes as an image
  std::uint64_t bases = 0;   // at most, of codecs of differences: [wire] base_mib of each edge that has one
  // ---- of each microbatch ----
  std::uint64_t graph = 0;   // from its forward to its backward; where graphs do not wait, one at a time
  bool graphs_wait = false;  // not on the last stage, whose backward follows at once, nor where they are made again
  std::uint64_t inputs = 0;  // of layers, whose graphs are made again one after the other: `graph` is the largest
  bool inputs_wait = false;  // as graphs
  std::uint64_t frames = 0;  // what it was sent and sends, until it is settled
  // ---- for a while ----
  std::uint64_t round = 0, prepared = 0;  // while parts are put together; while the candidate is made
  std::uint64_t gradients = 0;            // of all parameters, as a backward makes them
  std::uint64_t beside_graph = 0;         // of these, as it comes to the last graph, or a whole stage's is still there
  std::uint64_t passing = 0;              // of a pass
  std::uint64_t loss = 0;                 // the last stage: pieces of logits, and the head's gradient
  std::uint64_t image = 0;

  std::uint64_t state() const {
    return parameters + second_buffer + moments + accumulators + anchor + narrow + base + bases;
  }
  std::uint64_t entry() const { return frames + (graphs_wait ? graph : 0) + (inputs_wait ? inputs : 0); }
  // The most at a time, without an image. REQUIRES: entries > 0.
  std::uint64_t peak(std::uint64_t entries) const;
  std::uint64_t needed(std::uint64_t entries) const { return peak(entries) + image; }
};
// With [compute] recompute = "auto" as with "none".
StageMemory stage_memory(const RunConfig& config, const StageSpec& spec);

// What may wait of a forward in this run: what it says, or with "auto" each; what computes least comes first.
std::span<const Recompute> recomputes_of(const RunConfig& config);
RunConfig with_recompute(RunConfig config, Recompute recompute);

// A process's own, without any stage: libtorch, sockets, buffers. From above; a process measures its own
// (cli/program_memory.h).
inline constexpr std::uint64_t kProgramBytes = std::uint64_t{256} << 20;
// How many microbatches a peer has with so many credits: no more than the run has in flight.
std::uint64_t entries_with(const RunConfig& config, std::size_t credits);
// Bytes of the whole process that serves `spec` with so many credits. 0 where the executor is not torch's, whose arrays
// the manifest does not tell.
std::uint64_t process_bytes(const RunConfig& config, const StageSpec& spec, std::size_t credits,
                            std::uint64_t program_bytes = kProgramBytes);

// What one process that trains all stages, one microbatch at a time, takes beside their arrays. Where graphs are made
// again it has one at a time, the largest. REQUIRES: a stage at least.
std::uint64_t solo_bytes(const RunConfig& config, std::span<const StageSpec> specs);

// Where nobody bounds the memory: one replica's share of what the run has in flight, kCreditsUsual to kCreditsMax. A
// first stage holds a microbatch for as long as it is in flight, so with fewer the rest would wait.
std::size_t usual_credits(const RunConfig& config);

// Between kCreditsLeast and kCreditsMax. ERRORS: kTooLarge (the stage and kCreditsLeast entries do not fit: says what
// would).
Result<std::size_t> credits_within(std::uint64_t memory_bytes, const RunConfig& config, const StageSpec& spec);

// "3 MiB", rounded up: as all of these are told.
std::string mebibyte_text(std::uint64_t bytes);

}  // namespace shoal
