#include "runtime/stage_peer/line_codec.h"

#include "common/formatted.h"

namespace shoal {
namespace {
// Three digits, and never an exponent for what people write without one.
std::string figure(double value) { return formatted(value < 100 ? "%.3g" : "%.0f", value); }
}  // namespace

bool LineCodec::follow(double bytes_per_second, double compute_seconds) {
  if (bytes_per_second <= 0 || compute_seconds <= 0) return false;
  rate_ = bytes_per_second;
  compute_ = compute_seconds;
  const double part = static_cast<double>(raw_bytes_) / rate_ / compute_;
  const CodecId before = codec_;
  if (part > kSlow) codec_ = CodecId::kInt8;
  fast_ = part < kFast ? fast_ + 1 : 0;
  if (fast_ >= kInARow) codec_ = CodecId::kRaw;
  return codec_ != before;
}

std::string LineCodec::reason() const {
  if (rate_ <= 0) return "no line is measured yet";
  return "a raw tensor takes " + figure(1e3 * static_cast<double>(raw_bytes_) / rate_) + " ms of a line of " +
         figure(8e-6 * rate_) + " Mbit/s, and a microbatch is computed in " + figure(1e3 * compute_) + " ms";
}

}  // namespace shoal
