#include "layout/flow_network.h"

#include <algorithm>
#include <cmath>

#include "common/check.h"

namespace shoal {
namespace {
constexpr double kRoomRounding = 1e-11;  // of the largest room
constexpr double kCostRounding = 1e-11;  // of what a way of the dearest arcs costs
constexpr double kArcsOfAWay = 100;
}  // namespace

std::size_t FlowNetwork::add(std::size_t from, std::size_t to, double capacity, double cost) {
  SHOAL_CHECK(from < nodes_ && to < nodes_ && capacity >= 0 && cost >= 0);
  arcs_.push_back({static_cast<std::uint32_t>(to), capacity, cost});
  arcs_.push_back({static_cast<std::uint32_t>(from), 0, -cost});
  if (std::isfinite(capacity)) least_ = std::max(least_, kRoomRounding * capacity);
  cost_max_ = std::max(cost_max_, cost);
  return arcs_.size() / 2 - 1;
}

void FlowNetwork::sort_arcs() {
  first_.assign(nodes_ + 1, 0);
  const auto from = [&](std::size_t arc) { return arcs_[arc ^ 1].to; };
  for (std::size_t arc = 0; arc < arcs_.size(); ++arc) ++first_[from(arc) + 1];
  for (std::size_t node = 0; node < nodes_; ++node) first_[node + 1] += first_[node];
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  out_.resize(arcs_.size());
  for (std::size_t arc = 0; arc < arcs_.size(); ++arc) out_[next[from(arc)]++] = static_cast<std::uint32_t>(arc);
}

void FlowNetwork::send(std::size_t source, std::size_t sink, double most, const Wanted& wanted,
                       const std::function<void(const Part&)>& take) {
  sort_arcs();
  price_.assign(nodes_, 0);
  double rest = most;
  while (rest > least_ && price(source, sink)) {
    Part part{.unit_cost = price_[sink] - price_[source]};
    if (wanted && !wanted(part.unit_cost)) return;
    while (rest > least_) {
      seen_.assign(nodes_, 0);
      const double sent = push(source, sink, rest);
      if (sent <= 0) break;
      SHOAL_CHECK(std::isfinite(sent));
      part.flow += sent;
      rest -= sent;
    }
    if (part.flow <= 0) return;  // rounding alone told a way
    take(part);
  }
}

std::vector<bool> FlowNetwork::reached(std::size_t source) const {
  std::vector<bool> reached(nodes_, false);
  std::vector<std::size_t> open{source};
  reached[source] = true;
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    for (std::uint32_t i = first_[at]; i < first_[at + 1]; ++i) {
      const Arc& arc = arcs_[out_[i]];
      if (!is_open(arc) || reached[arc.to]) continue;
      reached[arc.to] = true;
      open.push_back(arc.to);
    }
  }
  return reached;
}

// Adds to each node's price what the cheapest way there costs, at most that to the sink (Dijkstra, reduced costs);
// false: none leads to the sink.
bool FlowNetwork::price(std::size_t source, std::size_t sink) {
  distance_.assign(nodes_, kNoLimit);
  seen_.assign(nodes_, 0);
  distance_[source] = 0;
  while (seen_[sink] == 0) {
    std::size_t at = nodes_;
    double nearest = kNoLimit;
    for (std::size_t node = 0; node < nodes_; ++node)
      if (seen_[node] == 0 && distance_[node] < nearest) nearest = distance_[at = node];
    if (at == nodes_) return false;
    seen_[at] = 1;
    for (std::uint32_t i = first_[at]; i < first_[at + 1]; ++i) {
      const Arc& arc = arcs_[out_[i]];
      if (!is_open(arc) || seen_[arc.to] != 0) continue;
      const double reduced = std::max(0.0, arc.cost + price_[at] - price_[arc.to]);
      distance_[arc.to] = std::min(distance_[arc.to], nearest + reduced);
    }
  }
  for (std::size_t node = 0; node < nodes_; ++node) price_[node] += std::min(distance_[node], distance_[sink]);
  return true;
}

double FlowNetwork::push(std::size_t at, std::size_t sink, double most) {
  if (at == sink) return most;
  seen_[at] = 1;
  double sent = 0;
  for (std::uint32_t i = first_[at]; i < first_[at + 1]; ++i) {
    Arc& arc = arcs_[out_[i]];
    if (seen_[arc.to] != 0 || !is_open(arc)) continue;
    if (arc.cost + price_[at] - price_[arc.to] > kCostRounding * kArcsOfAWay * cost_max_) continue;
    const double more = push(arc.to, sink, std::min(most - sent, arc.room));
    if (more <= 0) continue;
    arc.room -= more;
    arcs_[out_[i] ^ 1].room += more;
    sent += more;
    if (most - sent <= least_) break;
  }
  return sent;
}

}  // namespace shoal
