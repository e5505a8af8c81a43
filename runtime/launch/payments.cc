#include "runtime/launch/payments.h"

#include <algorithm>
#include <utility>

namespace shoal {

bool Payments::awaits(const PeerId& peer) const {
  const auto at = awaited_.lower_bound({peer, 0});
  return at != awaited_.end() && at->first.peer == peer;
}

std::optional<InboundFrames> Payments::await(const InboundFrames& frames, ReachQuery query, TimePoint now) {
  std::optional<InboundFrames> out;
  if (awaited_.size() >= kMax) {
    const auto oldest = std::min_element(awaited_.begin(), awaited_.end(),
                                         [](const auto& a, const auto& b) { return a.second.since < b.second.since; });
    out = oldest->first;
    awaited_.erase(oldest);
  }
  awaited_.insert_or_assign(frames, Awaited{std::move(query), now});
  return out;
}

std::optional<ReachQuery> Payments::take(const InboundFrames& frames) {
  auto taken = awaited_.extract(frames);
  if (taken.empty()) return std::nullopt;
  return std::move(taken.mapped().query);
}

std::vector<InboundFrames> Payments::take_late(TimePoint now) {
  std::vector<InboundFrames> late;
  for (const auto& [frames, awaited] : awaited_)
    if (now - awaited.since > kPatience) late.push_back(frames);
  for (const InboundFrames& frames : late) awaited_.erase(frames);
  return late;
}

void Payments::drop(const PeerId& peer) {
  std::erase_if(awaited_, [&](const auto& item) { return item.first.peer == peer; });
}

}  // namespace shoal
