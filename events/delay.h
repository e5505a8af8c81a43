#pragma once
// The delay of gradients, as a histogram. The delay of a gradient counts the inner steps that its replica made between
// the first forward of its microbatch there and the step that uses it. Weights are written by shifts, too: those are no
// steps. Value: copy, compare. Bounds: kBins counts; counts stay at their largest value instead of wrapping.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal {

// A delay that is shown is the mean over so many steps, and is shown once they were made.
inline constexpr std::size_t kDelayWindows = 16;

class DelayHistogram {
 public:
  static constexpr std::size_t kBins = 64;

  // `weight`: targets of the gradient. Delays of kBins - 1 and more share the last bin.
  void add(std::uint64_t delay, std::uint64_t weight);
  void merge(const DelayHistogram& other);
  // Mean over all weights, in inner steps; 0 without any. The last bin counts as kBins - 1: the least it can be.
  double mean() const;
  std::uint64_t total() const;
  std::span<const std::uint64_t> counts() const;  // of delay 0, 1, 2, ...; up to the last non-zero bin
  // The inverse of counts(). What lies beyond the last bin goes into it.
  static DelayHistogram of(std::span<const std::uint64_t> counts);
  bool operator==(const DelayHistogram&) const = default;

 private:
  std::array<std::uint64_t, kBins> counts_{};
};

}  // namespace shoal
