#include "transport/line_fill.h"

#include <algorithm>
#include <utility>

#include "transport/limits.h"

namespace shoal {
namespace {

constexpr std::uint64_t kBoundAtStart = 256u << 10;
constexpr std::uint64_t kBoundMin = 2 * limits::kChunkBytesMin;
constexpr double kAdded = 4u << 10;  // to the bound, a round
constexpr int kLeastPartsOfTarget = 2;
constexpr double kStartGain = 2, kBoundGrowth = 1.5;  // of the bound, a round
constexpr double kRises = 1.25;                       // by less the rate did not rise
constexpr double kDrainShare = 0.25, kFloorShare = 0.25;
constexpr Duration kTimeMin = 100us;  // of a chunk: less is the scheduler's doing
constexpr std::uint64_t kChunksOfBound = 16;

double clamped(double bound) {
  return std::clamp(bound, static_cast<double>(kBoundMin), static_cast<double>(limits::kByteCreditsMax));
}

}  // namespace

LineFill::LineFill() : bound_(kBoundAtStart) {}

Duration LineFill::least() const { return std::min(least_now_, least_before_); }
Duration LineFill::target() const { return least() / kLeastPartsOfTarget + kSlack; }

std::uint64_t LineFill::bound() const {
  if (!draining_) return static_cast<std::uint64_t>(bound_);
  return static_cast<std::uint64_t>(clamped(std::min(bound_, kDrainShare * rate_ * seconds_of(least()))));
}

std::uint64_t LineFill::room() const {
  const std::uint64_t most = bound();
  return most > under_way() ? most - under_way() : 0;
}

std::uint64_t LineFill::chunk_bytes() const {
  return std::clamp<std::uint64_t>(bound() / kChunksOfBound, limits::kChunkBytesMin, limits::kChunkBytes);
}

void LineFill::on_sent(TimePoint now, std::uint64_t bytes) {
  follow_period(now);
  if (draining_ && !drained_at_) drained_at_ = sent_;  // there was room
  const bool alone = under_way() == 0;
  sent_ += bytes;
  chunks_.push_back({sent_, now, delivered_, alone});
}

void LineFill::on_delivered(TimePoint now, std::uint64_t bytes) {
  delivered_ += std::min(bytes, under_way());
  std::optional<Chunk> newest;
  for (; !chunks_.empty() && chunks_.front().end <= delivered_; chunks_.pop_front()) {
    newest = chunks_.front();
    alone_ |= newest->alone;
  }
  if (!newest) return;
  take_time(*newest, now - newest->at);
  if (newest->delivered >= round_end_) end_round(*newest, now);
  follow_period(now);
}

void LineFill::take_time(const Chunk& chunk, Duration time) {
  least_now_ = std::min(least_now_, time);
  round_least_ = std::min(round_least_, time);
  if (!draining_ || !drained_at_ || chunk.end <= *drained_at_) return;
  draining_ = false;
  round_end_ = sent_;
  refilling_ = true;
}

void LineFill::end_round(const Chunk& newest, TimePoint now) {
  // By what came while the chunk was under way, whatever the bound is by now.
  rate_ = static_cast<double>(delivered_ - newest.delivered) / seconds_of(std::max(now - newest.at, kTimeMin));
  if (held_ && !draining_ && !std::exchange(refilling_, false)) {
    const bool short_queue = round_least_ - least() < target() / 2;
    if (starting_ && (short_queue || (rate_before_ >= 0 && rate_ >= kRises * rate_before_))) {
      bound_ = clamped(std::max(bound_, kStartGain * rate_ * seconds_of(least())));
      rate_before_ = rate_;
    } else if (starting_ && rate_before_ >= 0) {
      rate_before_ = -1;  // a loop that was late does that once
    } else if (starting_) {
      bound_ = clamped(rate_ * seconds_of(least() + target()));
      starting_ = false;
      floor_ = kFloorShare * bound_;
      drain();
    } else {
      // Half of the way: a round shows what the bound before it did.
      const double share = (1 + seconds_of(least() + target()) / seconds_of(round_least_)) / 2;
      bound_ = clamped(std::max(bound_ * (short_queue ? kBoundGrowth : share) + kAdded, floor_));
    }
  }
  round_end_ = delivered_;
  round_least_ = Duration::max();
  held_ = false;
}

void LineFill::follow_period(TimePoint now) {
  const std::int64_t period = now.time_since_epoch() / kPeriod;
  if (period == period_) return;
  period_ = period;
  if (least_now_ == Duration::max()) return;
  if (!alone_ && !starting_ && !draining_) drain();
  least_before_ = std::exchange(least_now_, Duration::max());
  alone_ = false;
  floor_ = kFloorShare * bound_;
}

void LineFill::drain() {
  draining_ = true;
  drained_at_.reset();
}

}  // namespace shoal
