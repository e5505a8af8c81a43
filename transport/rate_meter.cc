#include "transport/rate_meter.h"

#include <algorithm>

namespace shoal {
namespace {
constexpr Duration kSampleTimeMin = 200us;  // shorter ones measure the scheduler
constexpr double kBytesOfHalfWeight = 1u << 20;
constexpr double kWeightMin = 0.05, kWeightMax = 0.5;
}  // namespace

void RateMeter::on_sent(TimePoint now, std::uint64_t bytes) {
  if (in_flight_ == 0) {
    since_ = now;
    pending_ = 0;
    first_of_spell_ = true;
  }
  in_flight_ += bytes;
}

void RateMeter::on_delivered(TimePoint now, std::uint64_t bytes, Duration rtt) {
  in_flight_ -= std::min(bytes, in_flight_);
  pending_ += bytes;
  const bool spell_ends = in_flight_ == 0;
  if (first_of_spell_) {
    const Duration time = now - since_ - rtt;
    if (spell_ends && rtt > Duration::zero() && time >= kSampleTimeMin) sample(pending_, time);
    first_of_spell_ = false;
    since_ = now;
    pending_ = 0;
    return;
  }
  if (now - since_ < kSampleTimeMin) return;  // joined with the next credit
  sample(pending_, now - since_);
  since_ = now;
  pending_ = 0;
}

void RateMeter::sample(std::uint64_t bytes, Duration time) {
  const double rate = static_cast<double>(bytes) / seconds_of(time);
  const double weight = std::clamp(0.5 * static_cast<double>(bytes) / kBytesOfHalfWeight, kWeightMin, kWeightMax);
  rate_ = rate_ == 0 ? rate : rate_ + weight * (rate - rate_);
}

}  // namespace shoal
