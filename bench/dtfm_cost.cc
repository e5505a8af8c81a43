#include "bench/dtfm_cost.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>

#include "common/check.h"

namespace shoal {
namespace {

constexpr std::size_t kGroupMax = 64, kGroupsMax = 12;
constexpr double kMeanCounts = 1e-3;  // of the groups' mean cost, in what is climbed

using Groups = std::vector<std::vector<std::size_t>>;  // devices of each

Groups groups_of(std::size_t groups, const Layout& layout) {
  Groups members(groups);
  for (std::size_t device = 0; device < layout.size(); ++device) members[layout[device]].push_back(device);
  for (const auto& group : members) SHOAL_CHECK(group.size() == layout.size() / groups && group.size() <= kGroupMax);
  return members;
}

const ShapeLine& line_of(const SwarmShape& shape, std::size_t a, std::size_t b) {
  return shape.line(shape.peers[a].region, shape.peers[b].region);
}

double data_of(const SwarmShape& shape, const std::vector<std::size_t>& group) {
  const double part = kDtfmGradientBytes / static_cast<double>(group.size());
  double longest = 0;
  for (const std::size_t device : group) {
    double time = 0;
    for (const std::size_t other : group)
      if (other != device)
        time += 2 * (line_of(shape, device, other).delay + part / line_of(shape, device, other).rate);
    longest = std::max(longest, time);
  }
  return longest;
}

double hop_of(const SwarmShape& shape, std::size_t a, std::size_t b) {
  return line_of(shape, a, b).delay + kDtfmActivationBytes / line_of(shape, a, b).rate;
}

// Whether each of one group finds one of the other over hops of at most `longest` (Kuhn).
class Matching {
 public:
  Matching(const std::vector<std::vector<double>>& hops, double longest) : partner_(hops.size(), kNone) {
    for (const auto& row : hops) {
      std::uint64_t allowed = 0;
      for (std::size_t other = 0; other < row.size(); ++other)
        if (row[other] <= longest) allowed |= std::uint64_t{1} << other;
      allowed_.push_back(allowed);
    }
  }
  bool is_perfect() {
    for (std::size_t one = 0; one < allowed_.size(); ++one) {
      seen_ = 0;
      if (!find(one)) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  bool find(std::size_t one) {
    while (const std::uint64_t open = allowed_[one] & ~seen_) {
      const auto other = static_cast<std::size_t>(std::countr_zero(open));
      seen_ |= std::uint64_t{1} << other;
      if (partner_[other] == kNone || find(partner_[other])) return partner_[other] = one, true;
    }
    return false;
  }
  std::vector<std::uint64_t> allowed_;
  std::vector<std::size_t> partner_;
  std::uint64_t seen_ = 0;
};

double matched(const SwarmShape& shape, const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  std::vector<std::vector<double>> hops;
  std::vector<double> lengths;
  for (const std::size_t one : a) {
    hops.emplace_back();
    for (const std::size_t other : b) hops.back().push_back(hop_of(shape, one, other));
    lengths.insert(lengths.end(), hops.back().begin(), hops.back().end());
  }
  std::ranges::sort(lengths);
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return *std::ranges::partition_point(lengths, [&](double longest) { return !Matching(hops, longest).is_perfect(); });
}

// The shortest way through all, open at both ends (Held and Karp 1962).
double shortest_way(const std::vector<std::vector<double>>& hops) {
  const std::size_t places = hops.size();
  const std::size_t sets = std::size_t{1} << places;
  std::vector<double> ways(sets * places, kUnbounded);  // through a set, its last place
  for (std::size_t place = 0; place < places; ++place) ways[(std::size_t{1} << place) * places + place] = 0;
  for (std::size_t set = 1; set < sets; ++set)
    for (std::size_t last = 0; last < places; ++last) {
      const double way = ways[set * places + last];
      if (way == kUnbounded) continue;
      for (std::size_t next = 0; next < places; ++next) {
        if (set >> next & 1) continue;
        double& then = ways[(set | std::size_t{1} << next) * places + next];
        then = std::min(then, way + hops[last][next]);
      }
    }
  return *std::min_element(ways.end() - static_cast<std::ptrdiff_t>(places), ways.end());
}

struct Judged {
  DtfmCost cost;
  double mean = 0;  // of the groups' data, and of the hops between all of them
};

Judged judge(const SwarmShape& shape, std::size_t groups, const Layout& layout) {
  SHOAL_CHECK(groups >= 2 && groups <= kGroupsMax);
  const Groups members = groups_of(groups, layout);
  Judged judged;
  std::vector<std::vector<double>> hops(groups, std::vector<double>(groups, 0));
  for (std::size_t a = 0; a < groups; ++a) {
    const double data = data_of(shape, members[a]);
    judged.cost.data = std::max(judged.cost.data, data);
    judged.mean += data / static_cast<double>(groups);
    for (std::size_t b = 0; b < a; ++b) {
      hops[a][b] = hops[b][a] = matched(shape, members[a], members[b]);
      judged.mean += hops[a][b] / static_cast<double>(groups);
    }
  }
  judged.cost.pipe = 2 * shortest_way(hops);
  return judged;
}

// Devices in the order of their regions, each to a group that `choose` takes from those with room.
template <class Choose>
Layout dealt_to(const SwarmShape& shape, std::size_t groups, const Choose& choose) {
  std::vector<std::size_t> order(shape.peers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::less(), [&](std::size_t device) { return shape.peers[device].region; });
  std::vector<std::size_t> sizes(groups, 0), of_region(groups, 0);
  std::size_t region = SIZE_MAX;
  Layout layout(order.size(), 0);
  for (const std::size_t device : order) {
    if (shape.peers[device].region != region) of_region.assign(groups, 0);
    region = shape.peers[device].region;
    std::optional<std::size_t> best;
    for (std::size_t group = 0; group < groups; ++group)
      if (sizes[group] < order.size() / groups &&
          (!best || choose(sizes[group], of_region[group]) < choose(sizes[*best], of_region[*best])))
        best = group;
    ++sizes[*best];
    ++of_region[*best];
    layout[device] = static_cast<std::uint16_t>(*best);
  }
  return layout;
}

}  // namespace

DtfmCost dtfm_cost(const SwarmShape& shape, std::size_t groups, const Layout& layout) {
  return judge(shape, groups, layout).cost;
}

DtfmCost dtfm_cost_as_drawn(const SwarmShape& shape, std::size_t groups, const Layout& layout) {
  const Groups members = groups_of(groups, layout);
  DtfmCost cost;
  for (std::size_t group = 0; group < groups; ++group) {
    cost.data = std::max(cost.data, data_of(shape, members[group]));
    double longest = 0;
    for (std::size_t i = 0; group > 0 && i < members[group].size(); ++i)
      longest = std::max(longest, hop_of(shape, members[group - 1][i], members[group][i]));
    cost.pipe += 2 * longest;
  }
  return cost;
}

LayoutProblem dtfm_problem(const SwarmShape& shape, std::size_t groups) {
  return {.stages = static_cast<std::uint16_t>(groups),
          .kinds = kinds_of(shape),
          .sizes_stay = true,
          .stages_alike = true,
          .worth = [&shape, groups](const Layout& layout, double) {
            const Judged judged = judge(shape, groups, layout);
            return -(judged.cost.total() + kMeanCounts * judged.mean);
          }};
}

std::vector<Layout> dtfm_starts(const SwarmShape& shape, std::size_t groups, std::size_t drawn, std::uint64_t seed) {
  using Key = std::pair<std::size_t, std::size_t>;
  std::vector<Layout> starts = {
      dealt_to(shape, groups, [](std::size_t size, std::size_t) { return Key(size, 0); }),
      dealt_to(shape, groups, [](std::size_t size, std::size_t of_region) { return Key(of_region, kGroupMax - size); }),
      dealt_to(shape, groups, [](std::size_t size, std::size_t) { return Key(kGroupMax - size, 0); })};
  Rng rng(seed);
  for (std::size_t i = 0; i < drawn; ++i) starts.push_back(drawn_layout(shape.peers.size(), groups, rng));
  return starts;
}

Layout drawn_layout(std::size_t peers, std::size_t groups, Rng& rng) {
  Layout layout;
  for (std::size_t peer = 0; peer < peers; ++peer) layout.push_back(static_cast<std::uint16_t>(peer * groups / peers));
  rng.shuffle(layout);
  return layout;
}

}  // namespace shoal
