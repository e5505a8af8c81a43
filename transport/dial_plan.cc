#include "transport/dial_plan.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/rng.h"

namespace shoal {

DialPlan::DialPlan(const PeerId& self, const PeerId& peer)
    : salt_(std::hash<PeerId>{}(self) ^ std::hash<PeerId>{}(peer)) {}

void DialPlan::follow(Whereabouts whereabouts) {
  on_list_ = true;
  replace(std::move(whereabouts));
}

void DialPlan::hear(Whereabouts whereabouts) {
  if (!on_list_) replace(std::move(whereabouts));
}

void DialPlan::replace(Whereabouts whereabouts) {
  if (whereabouts_ == whereabouts) return;
  whereabouts_ = std::move(whereabouts);
  first_ = 0;
}

const std::string& DialPlan::next() {
  const auto& addresses = whereabouts_.addresses;
  return addresses[(first_ + tried_++) % addresses.size()];
}

void DialPlan::worked() { first_ = (first_ + tried_ - 1) % std::max<std::size_t>(1, whereabouts_.addresses.size()); }

void DialPlan::failed(TimePoint now) {
  const Duration full = pause_.next();
  // 3/4 .. 5/4 of it, so that those who lost the same peer do not come back in step.
  const std::uint64_t spread = mix64(salt_, ++failures_) % 512;
  retry_at_ = now + full * (768 + static_cast<std::int64_t>(spread)) / 1024;
}

void DialPlan::lasted(TimePoint now) {
  retry_at_ = now;
  failures_ = 0;
  pause_.reset();
}

}  // namespace shoal
