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
  first_ = first_home_ = 0;
}

std::string DialPlan::next() {
  const auto& [addresses, reach, homes] = whereabouts_;
  const std::size_t at = tried_++;
  if (at < addresses.size()) return addresses[(first_ + at) % addresses.size()];
  return "via/" + homes[(first_home_ + at - addresses.size()) % homes.size()];
}

void DialPlan::worked() {
  const std::size_t addresses = whereabouts_.addresses.size(), homes = whereabouts_.homes.size();
  if (tried_ > addresses && homes > 0)
    first_home_ = (first_home_ + tried_ - 1 - addresses) % homes;
  else if (addresses > 0)
    first_ = (first_ + tried_ - 1) % addresses;
}

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
