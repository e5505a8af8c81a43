#pragma once
// DT-FM's cost of a layout (Yuan et al. 2022, arXiv:2206.01288, section 3; constants and cases as in its repository,
// DS3Lab/DT-FM, scheduler/heuristic_evolutionary_solver at cda948f). Groups of R devices each hold a part of the
// layers; A is the delay and B the rate between two devices:
//
// clang-format off
//   data(g)  = max_{d in g} sum_{d' in g, d' != d} 2 (A_dd' + c_dp / (R B_dd'))      gradients, each device a part of them
//   w(g, h)  = min over perfect matchings of g with h of max_{pairs} (A + c_pp / B)  activations of the whole batch
//   cost     = max_g data(g) + 2 (the shortest way through all groups by w)          forward and backward
// clang-format on
//
// Compute is left out: its devices are alike. Pure. Thread: any.
#include <string>
#include <vector>

#include "common/rng.h"
#include "layout/layout_search.h"
#include "layout/link_table.h"
#include "layout/swarm_shape.h"

namespace shoal {

// GPT-3 XL in 24 layers: 1.3e9 parameters in fp32, three layers a group, and 61 sequences of 2048 x 2048 in fp16 (2024
// stands in its code for one of them) a device and step. Its gigabytes of gradients are 1e9, those of activations 2^30
// and then read as 1e9.
inline constexpr double kDtfmGradientBytes = 1.3e9 * 4 * 3 / 24;
inline constexpr double kDtfmSequences = 1.25e5 / 2048;
inline constexpr double kDtfmActivationBytes = 2024.0 * 2048 * 2 * kDtfmSequences / (1024.0 * 1024 * 1024) * 1e9;

struct DtfmCost {
  double data = 0, pipe = 0;  // seconds of a step; pipe both ways
  double total() const { return data + pipe; }
};

// REQUIRES: groups of one size, at most 64 devices each and 12 groups.
DtfmCost dtfm_cost(const SwarmShape& shape, std::size_t groups, const Layout& layout);
// What its random scheduler counts: the order of the groups, and the pairs, as they were drawn.
DtfmCost dtfm_cost_as_drawn(const SwarmShape& shape, std::size_t groups, const Layout& layout);

// For climb() and best_of_all(): groups of one size, alike. Borrows the shape. Of equal cost the layout whose groups
// are cheaper in the mean is a little better, so that one more good group counts before the last one is good.
LayoutProblem dtfm_problem(const SwarmShape& shape, std::size_t groups);
// Regions one after the other: spread over all groups, over the fewest that have room, and into one group after the
// other; and `drawn` more by chance.
std::vector<Layout> dtfm_starts(const SwarmShape& shape, std::size_t groups, std::size_t drawn, std::uint64_t seed);
Layout drawn_layout(std::size_t peers, std::size_t groups, Rng& rng);

struct DtfmCase {
  std::string name{};
  SwarmShape shape{};  // its devices, and lines; no stages
  std::size_t groups = 8;
};
// Its five: 64 devices in 8 groups. The same lines among 16 devices in 4 groups, and among 12 (world: 8) in 3 stages.
enum class CaseSize : std::uint8_t { kFull, kSmall, kTiny };
std::vector<DtfmCase> dtfm_cases(CaseSize size);
// Eight devices in each region of a table, in 8 groups.
DtfmCase case_of_links(const std::string& name, const LinkTable& links);

}  // namespace shoal
