#pragma once
// What [data] sequences = "auto" stands for: into how many microbatches a step is cut. Pure; thread-safe.
//
// A gradient is late by what is in flight, as a part of a step, so a step of few microbatches keeps a pipe idle: of its
// batch as many are made as let all that fill the pipe, 2 S R, be a quarter of a step (runtime/plan/flight_plan.h).
// They are not made smaller than kTargetsLeast for that, and never so large that fewer than 2 S R are a step's, while
// a microbatch has more than one sequence. None has more than kSequencesUsual, or kTargetsLeast targets where these are
// more: it has to fit into a device.
//
// Where nothing is learned (the executors of whole numbers), and where a step is given in microbatches ([sync]
// microbatches_per_step), it is kSequencesUsual.
#include <cstdint>

#include "runtime/config/config.h"

namespace shoal {

inline constexpr std::uint32_t kSequencesUsual = 4;
// A microbatch of 256 targets costs a CPU at most about a tenth of the rate of one of 1024, and one of 128 a fifth to a
// third: 0.89, 0.95 and 0.98 of it, and 0.67 and 0.77, at widths 64, 256 and 512 (`shoal solo`, four stages, one
// thread, fp32, 28 November 2026). Adding a microbatch's gradient up costs the same however few targets it has, which
// is why width hardly matters. GPUs want more: their owners give `sequences`. A frame of so many targets is 16 KiB in
// int8 at width 64, of which its headers are less than a hundredth.
inline constexpr std::uint32_t kTargetsLeast = 256;

// `batch`: targets of a step of all replicas, as far as they are known before they are cut.
std::uint32_t sequences_of_microbatch(const RunConfig& config, double batch);

}  // namespace shoal
