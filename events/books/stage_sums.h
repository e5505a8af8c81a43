#pragma once
// How many peers each stage has, and which has the fewest. Pure.
#include <cstdint>
#include <optional>
#include <vector>

namespace shoal {

class RunView;

struct StageSum {
  std::uint64_t serving = 0, members = 0;  // that live
  double rate = 0;                         // targets a second
};

std::vector<StageSum> sums_of(const RunView& view);
// With the fewest that serve; none where all have as many.
std::optional<std::size_t> weakest_of(const std::vector<StageSum>& sums);

}  // namespace shoal
