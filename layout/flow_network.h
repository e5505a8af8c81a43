#pragma once
// The most that can flow from one node of a network to another, at the least cost; and what stands in the way of more.
// Value without I/O. Thread: any. The method: primal-dual, all cheapest ways of a phase at once (Ford and Fulkerson
// 1962, chapter 3); each phase is dearer a unit than the one before.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace shoal {

class FlowNetwork {
 public:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  explicit FlowNetwork(std::size_t nodes) : nodes_(nodes) {}
  // REQUIRES: nodes of the network; capacity and cost of a unit >= 0. Returns the arc's number.
  std::size_t add(std::size_t from, std::size_t to, double capacity, double cost);

  // A part of the flow, all of it as dear as can be had no cheaper beside the parts before it.
  struct Part {
    double flow = 0;
    double unit_cost = 0;
  };
  // Whether a part that is so dear a unit is wanted, behind those before it.
  using Wanted = std::function<bool(double unit_cost)>;
  // Sends what can be sent, at most `most`, as long as `wanted` (none: always) says so; `take` gets each part.
  // REQUIRES: called once; no way without a limit where `most` has none.
  void send(std::size_t source, std::size_t sink, double most, const Wanted& wanted,
            const std::function<void(const Part&)>& take);

  // Behind send().
  double flow(std::size_t arc) const { return arcs_[2 * arc + 1].room; }
  // Where still more could come to: the full arcs from there to elsewhere are what binds.
  std::vector<bool> reached(std::size_t source) const;

 private:
  struct Arc {
    std::uint32_t to = 0;
    double room = 0, cost = 0;  // room: the residual capacity
  };
  void sort_arcs();
  bool price(std::size_t source, std::size_t sink);
  double push(std::size_t at, std::size_t sink, double most);
  bool is_open(const Arc& arc) const { return arc.room > least_; }

  std::size_t nodes_;
  std::vector<Arc> arcs_;                 // each with its reverse behind it
  std::vector<std::uint32_t> out_;        // numbers of arcs, by the node they begin at
  std::vector<std::uint32_t> first_;      // of each node, in out_
  std::vector<double> price_, distance_;  // by node: its potential; the way to it by reduced costs
  std::vector<std::uint8_t> seen_;
  double least_ = 0;     // less room than this is none: rounding
  double cost_max_ = 0;  // of an arc
};

}  // namespace shoal
