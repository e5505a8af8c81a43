#pragma once
// What `shoal-bench hop` trains: one model, cut into four stages, sixteen microbatches a step, `allreduce` with one
// replica a stage. Pure; thread-safe.
#include <cstdint>
#include <string>

namespace shoal {

struct HopSetting {
  std::uint32_t layers = 8, dim = 256, heads = 8, positions = 256, sequences = 4;
  std::uint16_t stages = 4;
  std::uint64_t microbatches_per_step = 16;
  std::uint64_t in_flight = 16;  // microbatches under way
  std::string codec = "raw";     // of activations and gradients; one of kCodecNames
  std::string text;              // path; the bytes do not matter for a rate
  std::uint64_t warm_steps = 2;  // before the measured ones
  std::uint64_t steps = 4;       // measured

  std::uint64_t tokens_per_microbatch() const { return std::uint64_t{sequences} * positions; }
};

// Without an end: whoever measures stops it while it is as busy as at the start of the measure.
std::string hop_toml(const HopSetting& setting);

// Tokens a second that a link of `bits_per_s` each way allows: a stage in the middle sends an activation down and a
// gradient up for every microbatch through one uplink. Frames are counted without their headers.
// REQUIRES: a codec's name.
double link_bound(const HopSetting& setting, double bits_per_s);

}  // namespace shoal
