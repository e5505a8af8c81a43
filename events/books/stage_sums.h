#pragma once
// What each stage counted and how many peers it has, and which has the fewest. Pure.
#include <cstdint>
#include <optional>
#include <vector>

#include "events/books/tally.h"

namespace shoal {

class RunView;

struct StageSum {
  Tally::Stage counts{};
  std::uint64_t undecided = 0;
  std::uint64_t serving = 0, members = 0;  // that live
  double rate = 0;                         // targets a second
};

std::vector<StageSum> sums_of(const RunView& view);
StageSum total_of(const std::vector<StageSum>& sums);  // without a version
// With the fewest that serve; none where all have as many.
std::optional<std::size_t> weakest_of(const std::vector<StageSum>& sums);

}  // namespace shoal
