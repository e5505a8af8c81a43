#include "runtime/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/check.h"

namespace shoal {

std::uint32_t Sampler::next(std::span<const float> logits) {
  SHOAL_CHECK(!logits.empty());
  const auto likelier = [&](std::uint32_t a, std::uint32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  if (options_.temperature <= 0) {
    const auto best = std::ranges::max_element(logits);  // the first of equals
    return static_cast<std::uint32_t>(best - logits.begin());
  }
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::size_t kept = order_.size();
  if (options_.top_k > 0) kept = std::min<std::size_t>(kept, options_.top_k);
  if (options_.top_p < 1 || kept < order_.size())
    std::ranges::partial_sort(order_, order_.begin() + static_cast<std::ptrdiff_t>(kept), likelier);
  const float top = *std::ranges::max_element(logits);
  weights_.clear();
  double sum = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    weights_.push_back(std::exp((static_cast<double>(logits[order_[i]]) - top) / options_.temperature));
    sum += weights_.back();
  }
  if (options_.top_p < 1) {
    double taken = 0;
    std::size_t count = 0;
    while (count < kept && taken < options_.top_p * sum) taken += weights_[count++];
    kept = std::max<std::size_t>(1, count);
    sum = std::accumulate(weights_.begin(), weights_.begin() + static_cast<std::ptrdiff_t>(kept), 0.0);
  }
  double point = rng_.uniform() * sum;
  for (std::size_t i = 0; i + 1 < kept; ++i) {
    point -= weights_[i];
    if (point < 0) return order_[i];
  }
  return order_[kept - 1];
}

}  // namespace shoal
