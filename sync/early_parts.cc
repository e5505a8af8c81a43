#include "sync/early_parts.h"

#include <algorithm>
#include <utility>

namespace shoal {

void EarlyParts::keep(Part arrived, std::uint64_t bytes_max) {
  if (arrived.part.phase != 0) return;
  const auto earlier =
      std::find_if(parts_.begin(), parts_.end(), [&](const Part& p) { return p.from == arrived.from; });
  if (earlier != parts_.end()) {
    if (earlier->part.round >= arrived.part.round) return;
    parts_.erase(earlier);
  }
  parts_.push_back(std::move(arrived));
  std::uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.frame.size();
  while (parts_.size() > kSendersMax || bytes > bytes_max) {
    const auto largest = std::max_element(parts_.begin(), parts_.end(),
                                          [](const Part& a, const Part& b) { return a.frame.size() < b.frame.size(); });
    bytes -= largest->frame.size();
    parts_.erase(largest);
  }
}

std::vector<EarlyParts::Part> EarlyParts::take(RoundId round) {
  std::vector<Part> of_round;
  for (Part& part : parts_)
    if (part.part.round == round) of_round.push_back(std::move(part));
  std::erase_if(parts_, [&](const Part& part) {
    return part.part.round <= round || part.part.round.value - round.value > kRoundsAheadMax;
  });
  return of_round;
}

void EarlyParts::forget_until(RoundId round) {
  std::erase_if(parts_, [&](const Part& part) { return part.part.round <= round; });
}

}  // namespace shoal
