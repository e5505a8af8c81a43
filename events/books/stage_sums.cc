#include "events/books/stage_sums.h"

#include <algorithm>

#include "events/books/run_view.h"

namespace shoal {

std::vector<StageSum> sums_of(const RunView& view) {
  std::vector<StageSum> sums(view.stages());
  for (const auto& [session, row] : view.peers().rows()) {
    if (!row.lives()) continue;
    StageSum& sum = sums[row.stage];
    ++sum.members;
    sum.serving += row.state == SeenState::kServing;
    sum.rate += row.rate.per_second();
  }
  for (std::uint16_t stage = 0; stage < view.stages(); ++stage) {
    sums[stage].counts = view.tally().of_stage(stage);
    sums[stage].undecided = view.tally().undecided(stage);
  }
  return sums;
}

StageSum total_of(const std::vector<StageSum>& sums) {
  StageSum total;
  for (const StageSum& sum : sums) {
    total.counts.secured += sum.counts.secured;
    total.counts.taken_back += sum.counts.taken_back;
    total.counts.lost += sum.counts.lost;
    total.counts.rounds += sum.counts.rounds;
    total.undecided += sum.undecided;
    total.serving += sum.serving;
    total.members += sum.members;
  }
  return total;
}

std::optional<std::size_t> weakest_of(const std::vector<StageSum>& sums) {
  if (sums.empty()) return std::nullopt;
  const auto [least, most] = std::minmax_element(
      sums.begin(), sums.end(), [](const StageSum& a, const StageSum& b) { return a.serving < b.serving; });
  if (least->serving == most->serving) return std::nullopt;
  return static_cast<std::size_t>(least - sums.begin());
}

}  // namespace shoal
