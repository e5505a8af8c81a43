#pragma once
// What a layout is worth: the bound of a swarm's rate, the microbatches in flight that it takes, and what binds. Pure
// functions of a SwarmShape: no I/O, no clock, no state. Thread: any.
//
// A peer i of stage k may be asked by every peer of stage k - 1, so a microbatch takes any path p = (i_0, ... i_S-1)
// with i_k serving k. With work w_k, speed v_i, forward and backward bytes f_k and g_k, and for a hop from i to j the
// delay d_ij, the rates b_ij = min(line, up_i, down_j) and b_ji:
//
// clang-format off
//   c_ik  = min(v_i / w_k,  up_i / (f_k + g_k-1),  down_i / (f_k-1 + g_k))     microbatches/s that i can take there
//   u_ijk = line_ij / max(f_k, g_k)                                           that the line to j can take
//   t_p   = 2 d(trainer, i_0) + sum_k w_k / v_i_k + sum_k<S-1 (2 d + f_k / b_ij + g_k / b_ji)        of a path, alone
//   X     = max  sum_p x_p   with  sum_{p through i} x_p <= c_ik,  sum_{p over ij} x_p <= u_ijk
//   N     = min  sum_p x_p t_p  over all x with  sum_p x_p = X
// clang-format on
//
// X is a maximum flow: no router can pass it. N is its least cost, and by Little's law (1961) the microbatches in
// flight of a swarm that makes X: with fewer it cannot. What is full on the edge of what more could still reach (the
// minimum cut) binds. With n in flight, n < N, the bound is what the cheapest paths make of them.
//
// A round of a stage of R members lasts T_k = max_i sum_{j != i} 2 (d_ij + P_k / (R b_ij)) with P_k round bytes: the
// data parallel cost of DT-FM (Yuan et al. 2022, arXiv:2206.01288, section 3), whose pipeline cost, the shortest way
// through all groups, is here the order of the stages, which the run gives, and N. Of the time between two rounds it
// takes rho_k = T_k X / a_k, where a_k microbatches lie between them. Under allreduce X is also at most a_k / T_k.
//
//   worth = max over x <= X of  x n / (n + max(1, N(x)) - 1) / (1 + rho(x))   with n = 8 per peer
//
// with N(x) and rho(x) of the cheapest x microbatches a second. So layouts of almost the same bound are told apart by
// what they take to reach it: it is what a closed network of balanced queues makes with n customers (Zahorjan et al.
// 1982), over lines that rounds share. With so many "auto" keeps lines full at most (runtime/plan/flight_plan.h): two a
// peer fill a pipe whose hops last as long as its passes, and four times that is its bound.
#include <cstdint>
#include <vector>

#include "layout/swarm_shape.h"

namespace shoal {

inline constexpr double kInFlightEach = 8;  // of a peer, in the worth

enum class Binding : std::uint8_t {
  kCompute,  // of peers of a stage
  kOwnLine,  // the line of a peer, over all it sends or receives
  kLine,     // the line between two peers
  kRound,    // a stage's rounds
};

struct Bind {
  Binding what = Binding::kCompute;
  std::size_t stage = 0;         // kLine: the one in front of it
  std::size_t from = 0, to = 0;  // regions; of kCompute and kOwnLine both the peer's
  double rate = 0;               // microbatches a second that pass there, of X
};

struct RegionFlow {
  std::size_t stage = 0;  // in front of the lines
  std::size_t from = 0, to = 0;
  double rate = 0;  // microbatches a second
};

struct LayoutFigures {
  double rate = 0;         // X; 0: a stage has nobody
  double in_flight = 0;    // N
  double round_share = 0;  // max rho
  double worth = 0;
};

struct LayoutStory : LayoutFigures {
  std::vector<double> stage_rates;  // what each stage's peers can take, sum of c_ik
  std::vector<double> peer_rates;   // by peer: what goes through it
  std::vector<double> round_times;  // T_k
  std::vector<Bind> binds;          // joined by stage, regions and cause, the largest first
  std::vector<RegionFlow> flows;    // joined, by stage
  // The cheapest paths first: with in_flight up to here the bound is `rate`.
  struct Step {
    double in_flight = 0, rate = 0;
  };
  std::vector<Step> steps;
  double rate_with(double in_flight) const;  // the bound with so many in flight
};

// Borrows the shape.
class LayoutCost {
 public:
  // REQUIRES: one stage at least.
  explicit LayoutCost(const SwarmShape& shape) : shape_(shape), kinds_(kinds_of(shape)) {}

  // REQUIRES, here and below: a stage of the run for each peer.
  LayoutFigures figures(const Layout& layout) const;
  LayoutStory story(const Layout& layout) const;
  // The worth alone, or a number that is not above `enough` where the worth is not: that is known earlier.
  double worth(const Layout& layout, double enough) const;
  const std::vector<std::size_t>& kinds() const { return kinds_; }

 private:
  const SwarmShape& shape_;
  std::vector<std::size_t> kinds_;
};

}  // namespace shoal
