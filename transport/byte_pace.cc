#include "transport/byte_pace.h"

#include <algorithm>

namespace shoal {

void BytePace::pass(TimePoint now, std::uint64_t bytes) {
  const Duration time = time_of(bytes);
  free_at_ = std::max(free_at_, now - std::max(kBurst, time)) + time;
  passed_at_ = now;
}

// The time of what waits meanwhile goes on.
void BytePace::pay(std::uint64_t bytes) { free_at_ = std::min(free_at_ + time_of(bytes), passed_at_ + kDebtMax); }

void FairQueue::push(ConnectionId connection, Bytes message) {
  Share& share = shares_[connection];
  if (share.waiting.empty()) {
    share.start = std::max(share.start, now_);
    if (!share.held) turns_.emplace(share.start, connection);
  }
  const std::uint64_t cost = message.size() + kMessageCost;
  cost_ += cost;
  share.cost += cost;
  share.waiting.push_back(std::move(message));
}

void FairQueue::pop() {
  const auto [start, connection] = *turns_.begin();
  turns_.erase(turns_.begin());
  Share& share = shares_.at(connection);
  const std::uint64_t cost = share.waiting.front().size() + kMessageCost;
  share.waiting.pop_front();
  now_ = start;
  cost_ -= cost;
  share.cost -= cost;
  share.start += cost;
  if (!share.waiting.empty()) turns_.emplace(share.start, connection);
}

void FairQueue::hold() {
  shares_.at(next()).held = true;
  turns_.erase(turns_.begin());
}

void FairQueue::release(ConnectionId connection) {
  const auto found = shares_.find(connection);
  if (found == shares_.end() || !found->second.held) return;
  Share& share = found->second;
  share.held = false;
  share.start = std::max(share.start, now_);  // what it could not take meanwhile is the others'
  if (!share.waiting.empty()) turns_.emplace(share.start, connection);
}

void FairQueue::forget(ConnectionId connection) {
  const auto found = shares_.find(connection);
  if (found == shares_.end()) return;
  turns_.erase({found->second.start, connection});
  cost_ -= found->second.cost;
  shares_.erase(found);
}

std::uint64_t FairQueue::cost_of(ConnectionId connection) const {
  const auto found = shares_.find(connection);
  return found == shares_.end() ? 0 : found->second.cost;
}

ConnectionId FairQueue::largest() const {
  return std::max_element(shares_.begin(), shares_.end(),
                          [](const auto& a, const auto& b) { return a.second.cost < b.second.cost; })
      ->first;
}

}  // namespace shoal
