#include "layout/layout_plan.h"

#include <algorithm>
#include <numeric>

namespace shoal {
namespace {

constexpr std::uint16_t kNowhere = UINT16_MAX;
constexpr std::uint64_t kAsked = 3'000'000;  // of a peer and stage: seconds, however large a swarm is

bool fits(const SwarmShape& shape, std::size_t peer, std::size_t stage) {
  const std::vector<bool>& fits = shape.peers[peer].fits;
  return fits.empty() || fits[stage];
}

std::string stage_text(std::size_t stage) { return "stage " + std::to_string(stage); }

Error nobody_for(std::size_t stage) {
  return make_error(ErrorCode::kInput, "no peer is left that has the memory for " + stage_text(stage) +
                                           ". HINT: more stages make each smaller, or give a peer more memory_mib");
}

// Shares peers out, one after the other.
class Dealer {
 public:
  explicit Dealer(const SwarmShape& shape)
      : shape_(shape), layout_(shape.peers.size(), kNowhere), rates_(shape.stages.size(), 0) {}

  void give(std::size_t peer, std::size_t stage) {
    layout_[peer] = static_cast<std::uint16_t>(stage);
    rates_[stage] += shape_.peers[peer].speed / shape_.stages[stage].work;
  }
  double rate(std::size_t stage) const { return rates_[stage]; }

  // To the stage of the least rate that it fits.
  void give_to_weakest(std::size_t peer) {
    std::optional<std::size_t> weakest;
    for (std::size_t stage = 0; stage < rates_.size(); ++stage)
      if (fits(shape_, peer, stage) && (!weakest || rates_[stage] < rates_[*weakest])) weakest = stage;
    if (weakest) give(peer, *weakest);
  }

  // Somebody for each stage, by augmenting paths (Kuhn): whoever is the last of another one gives way where a third
  // can take its place there.
  Result<Layout> finish() {
    for (std::size_t stage = 0; stage < rates_.size(); ++stage) {
      if (std::ranges::find(layout_, static_cast<std::uint16_t>(stage)) != layout_.end()) continue;
      std::vector<bool> tried(rates_.size(), false);
      if (!find_for(stage, tried)) return nobody_for(stage);
    }
    return layout_;
  }

 private:
  bool find_for(std::size_t stage, std::vector<bool>& tried) {
    tried[stage] = true;
    for (std::size_t peer = 0; peer < layout_.size(); ++peer) {
      if (!fits(shape_, peer, stage)) continue;
      const std::uint16_t from = layout_[peer];
      if (std::ranges::count(layout_, from) > 1) return layout_[peer] = static_cast<std::uint16_t>(stage), true;
      if (tried[from]) continue;
      layout_[peer] = static_cast<std::uint16_t>(stage);
      if (find_for(from, tried)) return true;
      layout_[peer] = from;
    }
    return false;
  }

  const SwarmShape& shape_;
  Layout layout_;
  std::vector<double> rates_;
};

std::vector<std::size_t> by_speed(const SwarmShape& shape) {
  std::vector<std::size_t> order(shape.peers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t peer) { return shape.peers[peer].speed; });
  return order;
}

// Each region behind the one that it is nearest to, from the first on.
std::vector<std::size_t> regions_in_line(const SwarmShape& shape) {
  std::vector<std::size_t> line{0};
  std::vector<bool> taken(shape.regions, false);
  taken[0] = true;
  while (line.size() < shape.regions) {
    std::size_t nearest = shape.regions;
    for (std::size_t region = 0; region < shape.regions; ++region)
      if (!taken[region] &&
          (nearest == shape.regions || shape.line(line.back(), region).delay < shape.line(line.back(), nearest).delay))
        nearest = region;
    taken[nearest] = true;
    line.push_back(nearest);
  }
  return line;
}

std::vector<std::size_t> by_region(const SwarmShape& shape) {
  std::vector<std::size_t> order, fast = by_speed(shape);
  for (const std::size_t region : regions_in_line(shape))
    for (const std::size_t peer : fast)
      if (shape.peers[peer].region == region) order.push_back(peer);
  return order;
}

Result<Layout> dealt(const SwarmShape& shape, const std::vector<std::size_t>& order) {
  Dealer dealer(shape);
  for (const std::size_t peer : order) dealer.give_to_weakest(peer);
  return dealer.finish();
}

// Stage after stage takes its part of all speeds, relative to its work.
Result<Layout> filled(const SwarmShape& shape) {
  double speed = 0, work = 0;
  for (const ShapePeer& peer : shape.peers) speed += peer.speed;
  for (const ShapeStage& stage : shape.stages) work += stage.work;
  Dealer dealer(shape);
  std::size_t stage = 0;
  for (const std::size_t peer : by_region(shape)) {
    while (stage + 1 < shape.stages.size() && dealer.rate(stage) * (1 + 1e-9) >= speed / work) ++stage;
    fits(shape, peer, stage) ? dealer.give(peer, stage) : dealer.give_to_weakest(peer);
  }
  return dealer.finish();
}

Status check_shape(const SwarmShape& shape) {
  if (shape.peers.size() < shape.stages.size())
    return make_error(ErrorCode::kInput, "the run has " + std::to_string(shape.stages.size()) +
                                             " stages and the file " + std::to_string(shape.peers.size()) +
                                             " peers: each stage needs one. HINT: fewer [pipeline] stages");
  for (std::size_t peer = 0; peer < shape.peers.size(); ++peer) {
    bool somewhere = false;
    for (std::size_t stage = 0; stage < shape.stages.size(); ++stage) somewhere = somewhere || fits(shape, peer, stage);
    if (!somewhere)
      return make_error(ErrorCode::kInput, "peer \"" + shape.peers[peer].name +
                                               "\" has the memory for no stage. HINT: more [pipeline] stages make each "
                                               "smaller, or leave the peer out");
  }
  return {};
}

}  // namespace

LayoutProblem problem_of(const SwarmShape& shape, const LayoutCost& cost) {
  return {.stages = static_cast<std::uint16_t>(shape.stages.size()),
          .kinds = cost.kinds(),
          .worth = [&cost](const Layout& layout, double enough) { return cost.worth(layout, enough); },
          .fits = [&shape](std::size_t peer, std::uint16_t stage) { return fits(shape, peer, stage); }};
}

Result<std::vector<Layout>> layout_starts(const SwarmShape& shape) {
  SHOAL_TRY(check_shape(shape));
  std::vector<Layout> starts;
  for (auto start : {dealt(shape, by_speed(shape)), dealt(shape, by_region(shape)), filled(shape)}) {
    if (!start.ok()) return start.error();
    starts.push_back(*std::move(start));
  }
  return starts;
}

Result<PlannedLayout> plan_layout(const SwarmShape& shape) {
  SHOAL_ASSIGN(const std::vector<Layout> starts, layout_starts(shape));
  const LayoutCost cost(shape);
  const LayoutProblem problem = problem_of(shape, cost);
  if (auto best = best_of_all(problem, kLookedAtOneByOne)) return PlannedLayout{std::move(best->layout), true};
  const SearchBounds bounds{.asked_max = kAsked / (shape.peers.size() * shape.stages.size())};
  return PlannedLayout{climb(problem, starts, bounds).layout, false};
}

}  // namespace shoal
