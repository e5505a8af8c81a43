#include "bench/rebalance_world.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "authority/moves.h"
#include "authority/planner.h"
#include "common/check.h"
#include "common/rng.h"

namespace shoal {
namespace {

constexpr double kTick = 1;  // seconds
constexpr double kHour = 3600;

struct Node {
  PeerId peer;
  std::uint64_t life = 1;
  StageId stage;
  double speed = 1, serves_at = 0;
  bool moving = false;  // on its way
};

// Made and possible, in microbatches.
struct Work {
  double made = 0, possible = 0;
  double share() const { return possible > 0 ? made / possible : 1; }
};

class World {
 public:
  World(const SwarmTrace& trace, const RebalanceWorld& world) : trace_(trace), world_(world), rng_(world.seed) {}

  RebalanceFigures run() {
    std::size_t next = 0;
    double next_swarm = seconds_of(world_.period), peer_hours = 0, could = 0, stood = 0;
    Work all, first, last;
    RebalanceFigures figures;
    for (double now = 0; now < trace_.seconds; now += kTick) {
      for (; next < trace_.events.size() && trace_.events[next].seconds <= now; ++next) take(trace_.events[next], now);
      for (auto& [number, node] : nodes_)
        if (node.moving && node.serves_at <= now) {
          node.moving = false;
          moves_.on_serving(node.peer, session_of(node), at(now));
        }
      if (world_.planner == MovePlanner::kShoal && moves_.look_due(at(now))) figures.moves += look(now) ? 1 : 0;
      if (world_.planner == MovePlanner::kSwarm && now >= next_swarm) {
        figures.moves += swarm_move(now) ? 1 : 0;
        next_swarm += seconds_of(world_.period);
      }
      const double made = rate(now) * kTick, possible = best() * kTick;
      all.made += made, all.possible += possible;
      if (now < kHour) first.made += made, first.possible += possible;
      if (now >= trace_.seconds - kHour) last.made += made, last.possible += possible;
      could += possible > 0 ? kTick : 0;
      stood += possible > 0 && made == 0 ? kTick : 0;
      peer_hours += static_cast<double>(nodes_.size()) * kTick / kHour;
    }
    figures.mean_share = all.share();
    figures.first_hour = first.share();
    figures.last_hour = last.share();
    figures.moves_per_peer_hour = peer_hours > 0 ? static_cast<double>(figures.moves) / peer_hours : 0;
    figures.stood_share = could > 0 ? stood / could : 0;
    return figures;
  }

 private:
  static TimePoint at(double seconds) { return TimePoint{} + from_seconds(seconds); }
  static Session session_of(const Node& node) { return Session::of(node.peer, node.life); }

  void take(const TraceEvent& event, double now) {
    const auto known = nodes_.find(event.node);
    if (!event.joins) {
      if (known == nodes_.end()) return;
      moves_.on_over(known->second.peer, session_of(known->second), false, at(now));
      nodes_.erase(known);
      return;
    }
    if (known != nodes_.end()) return;
    Node node;
    node.peer.bytes[0] = static_cast<std::uint8_t>(event.node >> 8);
    node.peer.bytes[1] = static_cast<std::uint8_t>(event.node);
    node.life = ++lives_;
    node.speed = world_.spread > 0 ? std::exp(world_.spread * rng_.normal()) : 1;
    node.serves_at = now + world_.start_s;
    node.stage = place(now);
    nodes_.emplace(event.node, node);
  }

  std::vector<Worker> workers(double now) const {
    std::vector<Worker> all;
    for (const auto& [number, node] : nodes_) {
      const bool settled = node.serves_at + seconds_of(Moves::kSettled) <= now;
      all.push_back({.session = session_of(node),
                     .peer = node.peer,
                     .stage = node.stage,
                     .speed = settled ? std::optional(node.speed) : std::nullopt,
                     .movable = settled && !node.moving});
    }
    bound_speeds(all);
    return all;
  }
  std::vector<StageLoad> loads() const {
    std::vector<StageLoad> all;
    for (std::uint16_t i = 0; i < world_.stages; ++i) all.push_back({.stage = StageId(i)});
    return all;
  }
  StageId place(double now) const {
    auto all = workers(now);
    moves_.place(all, {});
    const auto rates = stage_rates(loads(), all);
    std::vector<StageSupply> supply;
    for (std::uint16_t i = 0; i < world_.stages; ++i) {
      StageSupply of;
      of.stage = StageId(i);
      of.members = static_cast<std::size_t>(std::ranges::count(all, StageId(i), &Worker::stage));
      of.rate = rates[i];
      supply.push_back(of);
    }
    const auto choice = choose_stage(supply, {});
    SHOAL_CHECK(choice.ok());
    return choice->stage;
  }

  std::vector<double> rates(double now) const {
    std::vector<double> all(world_.stages, 0);
    for (const auto& [number, node] : nodes_)
      if (node.serves_at <= now) all[node.stage.value] += node.speed;
    return all;
  }
  double rate(double now) const {
    const auto all = rates(now);
    return *std::min_element(all.begin(), all.end());
  }
  double best() const {
    if (world_.spread == 0) return static_cast<double>(nodes_.size() / world_.stages);
    double sum = 0;
    for (const auto& [number, node] : nodes_) sum += node.speed;
    return nodes_.size() < world_.stages ? 0 : sum / world_.stages;
  }

  void go(Node& node, StageId to, double now) {
    node.stage = to;
    node.serves_at = now + world_.away_s;
    node.moving = true;
  }
  bool look(double now) {
    const MoveOptions how{.horizon = world_.horizon, .away = from_seconds(world_.away_s)};
    const auto move = moves_.look(loads(), workers(now), how, at(now));
    if (!move) return false;
    for (auto& [number, node] : nodes_) {
      if (node.peer != move->peer) continue;
      moves_.on_over(node.peer, session_of(node), true, at(now));
      node.life = ++lives_;
      moves_.on_joined(node.peer, session_of(node), move->to, at(now));
      go(node, move->to, now);
    }
    return true;
  }
  bool swarm_move(double now) {
    const auto all = rates(now);
    const auto idle = std::max_element(all.begin(), all.end()), loaded = std::min_element(all.begin(), all.end());
    if (*idle <= *loaded) return false;
    const StageId from(static_cast<std::uint16_t>(idle - all.begin())),
        to(static_cast<std::uint16_t>(loaded - all.begin()));
    std::vector<Node*> candidates;
    for (auto& [number, node] : nodes_)
      if (node.stage == from && node.serves_at <= now) candidates.push_back(&node);
    if (candidates.empty()) return false;
    go(*candidates[rng_.below(candidates.size())], to, now);
    return true;
  }

  const SwarmTrace& trace_;
  const RebalanceWorld& world_;
  Rng rng_;
  std::map<std::uint32_t, Node> nodes_;
  std::uint64_t lives_ = 0;
  Moves moves_;
};

}  // namespace

RebalanceFigures run_rebalance(const SwarmTrace& trace, const RebalanceWorld& world) {
  return World(trace, world).run();
}

}  // namespace shoal
