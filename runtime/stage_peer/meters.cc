#include "runtime/stage_peer/meters.h"

namespace shoal {

void Meters::encoded(std::size_t bytes) {
  if (bytes == 0) return;
  readings_.payload_bytes += bytes;
  readings_.fp32_bytes += activation_bytes_;
}

void Meters::measure(std::uint64_t counted, TimePoint now) {
  if (now - rate_since_ < kRatePeriod) return;
  readings_.rate = static_cast<double>((counted - rate_counted_) * targets_) / seconds_of(now - rate_since_);
  rate_counted_ = counted;
  rate_since_ = now;
}

}  // namespace shoal
