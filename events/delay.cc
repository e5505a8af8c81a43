#include "events/delay.h"

#include <algorithm>
#include <limits>

namespace shoal {
namespace {

std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return a > kMost - b ? kMost : a + b;
}

}  // namespace

void DelayHistogram::add(std::uint64_t delay, std::uint64_t weight) {
  std::uint64_t& bin = counts_[std::min<std::uint64_t>(delay, kBins - 1)];
  bin = saturating_sum(bin, weight);
}

void DelayHistogram::merge(const DelayHistogram& other) {
  for (std::size_t delay = 0; delay < kBins; ++delay) add(delay, other.counts_[delay]);
}

double DelayHistogram::mean() const {
  double weights = 0, steps = 0;
  for (std::size_t delay = 0; delay < kBins; ++delay) {
    weights += static_cast<double>(counts_[delay]);
    steps += static_cast<double>(delay) * static_cast<double>(counts_[delay]);
  }
  return weights == 0 ? 0 : steps / weights;
}

std::uint64_t DelayHistogram::total() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts_) sum = saturating_sum(sum, count);
  return sum;
}

std::span<const std::uint64_t> DelayHistogram::counts() const {
  std::size_t used = kBins;
  while (used > 0 && counts_[used - 1] == 0) --used;
  return {counts_.data(), used};
}

DelayHistogram DelayHistogram::of(std::span<const std::uint64_t> counts) {
  DelayHistogram histogram;
  for (std::size_t delay = 0; delay < counts.size(); ++delay) histogram.add(delay, counts[delay]);
  return histogram;
}

}  // namespace shoal
