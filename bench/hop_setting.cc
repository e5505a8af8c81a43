#include "bench/hop_setting.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "compression/frame.h"

namespace shoal {

std::string hop_toml(const HopSetting& s) {
  std::ostringstream out;
  out << "[run]\nname = \"hop\"\n"
      << "[model]\nlayers = " << s.layers << "\ndim = " << s.dim << "\nheads = " << s.heads
      << "\npositions = " << s.positions << "\n"
      << "[data]\npath = " << nlohmann::json(s.text).dump() << "\nsequences = " << s.sequences
      << "\nvalidation_samples = 1\n"
      << "[pipeline]\nstages = " << s.stages << "\nin_flight = " << s.in_flight << "\n"
      << "[sync]\nrule = \"allreduce\"\nmicrobatches_per_step = " << s.microbatches_per_step << "\n"
      << "[wire]\nforward = \"" << s.codec << "\"\nbackward = \"" << s.codec << "\"\n";
  return out.str();
}

double link_bound(const HopSetting& s, double bits_per_s) {
  const double elements = static_cast<double>(s.tokens_per_microbatch()) * s.dim;
  const Shape shape = {static_cast<std::int64_t>(s.tokens_per_microbatch()), std::int64_t{s.dim}};
  const Codec& codec = codec_for(*codec_named(s.codec));
  const std::uint64_t payload_bytes = codec.frame_bytes(shape, DType::kF32) - frame_header_bytes(shape.size());
  const double bits_per_element = 8 * static_cast<double>(payload_bytes) / elements;
  const double bits_per_microbatch = elements * bits_per_element * (s.stages > 2 ? 2 : 1);
  return bits_per_s / bits_per_microbatch * static_cast<double>(s.tokens_per_microbatch());
}

}  // namespace shoal
