#include "transport/relay/byte_shares.h"

#include <algorithm>

#include "common/check.h"

namespace shoal {

ByteShares::ByteShares(double bytes_per_second)
    : rate_(bytes_per_second), burst_(std::max(kBurstMin, rate_ * seconds_of(kBurst))), tokens_(burst_) {}

void ByteShares::want(Flow flow, Lane lane) {
  if (shares_.try_emplace(flow, Share{lane, kQuantum}).second) turns_of(lane).push_back(flow);
}

void ByteShares::rest(Flow flow) {
  const auto share = shares_.find(flow);
  if (share == shares_.end()) return;
  std::erase(turns_of(share->second.lane), flow);
  shares_.erase(share);
}

ByteShares::Flow ByteShares::first() const {
  const bool control = wants(Lane::kControl) && (!wants(Lane::kBulk) || control_run_ < kControlRun);
  return turns_of(control ? Lane::kControl : Lane::kBulk).front();
}

double ByteShares::needed() const {
  const Share& share = shares_.at(first());
  return static_cast<double>(share.lane == Lane::kControl ? std::min(share.deficit, kControlLeast) : share.deficit);
}

std::optional<ByteShares::Turn> ByteShares::next(TimePoint now) {
  tokens_ = rate_ > 0 ? std::min(burst_, tokens_ + rate_ * seconds_of(now - filled_at_)) : burst_;
  filled_at_ = now;
  if (shares_.empty() || tokens_ < needed()) return std::nullopt;
  const Flow flow = first();
  return Turn{flow, std::min(shares_.at(flow).deficit, static_cast<std::size_t>(tokens_))};
}

void ByteShares::carried(Flow flow, std::size_t bytes) {
  Share& share = shares_.at(flow);
  SHOAL_CHECK_LE(bytes, share.deficit);
  tokens_ -= static_cast<double>(bytes);
  share.deficit -= bytes;
  if (share.lane == Lane::kBulk)
    control_run_ -= std::min(control_run_, 4 * bytes);
  else
    control_run_ = wants(Lane::kBulk) ? control_run_ + bytes : 0;
  if (share.deficit > 0) return;
  share.deficit = kQuantum;
  turns_of(share.lane).pop_front();
  turns_of(share.lane).push_back(flow);
}

std::optional<TimePoint> ByteShares::turn_at() const {
  if (shares_.empty()) return std::nullopt;
  const double missing = needed() - tokens_;
  return missing <= 0 ? filled_at_ : filled_at_ + from_seconds(missing / rate_) + 1us;
}

}  // namespace shoal
