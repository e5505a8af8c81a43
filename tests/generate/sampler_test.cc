#include "runtime/generate/sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace shoal {
namespace {

const std::vector<float> kLogits = {0.0f, 2.0f, 1.0f, 2.0f, -1.0f};

std::array<int, 5> drawn(const SamplingOptions& options, int draws = 20000) {
  Sampler sampler(options);
  std::array<int, 5> counts{};
  for (int i = 0; i < draws; ++i) ++counts.at(sampler.next(kLogits));
  return counts;
}

TEST(SamplerTest, WithoutTemperatureTheFirstOfTheLikeliestIsTaken) {
  EXPECT_EQ(drawn({.temperature = 0}), (std::array{0, 20000, 0, 0, 0}));
}

TEST(SamplerTest, DrawsAsOftenAsTheSoftmaxSays) {
  for (const double temperature : {0.5, 1.0, 2.0}) {
    const auto counts = drawn({.temperature = temperature, .seed = 3});
    double sum = 0;
    for (const float logit : kLogits) sum += std::exp(logit / temperature);
    for (std::size_t i = 0; i < 5; ++i) {
      const double wanted = std::exp(kLogits[i] / temperature) / sum;
      EXPECT_NEAR(counts[i] / 20000.0, wanted, 4 * std::sqrt(wanted / 20000)) << temperature << ' ' << i;
    }
  }
}

TEST(SamplerTest, TopKLeavesTheRestOut) {
  const auto counts = drawn({.temperature = 1, .top_k = 3});
  EXPECT_EQ(counts[0] + counts[4], 0);
  EXPECT_GT(counts[2], 0);
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 1}), (std::array{0, 20000, 0, 0, 0}));
}

TEST(SamplerTest, TopPKeepsTheLikeliestThatTogetherHaveIt) {
  // The softmax is 0.053, 0.390, 0.144, 0.390, 0.019 (of 0, 2, 1, 2, -1).
  const auto two = drawn({.temperature = 1, .top_p = 0.7});
  EXPECT_EQ(two[0] + two[2] + two[4], 0);
  EXPECT_NEAR(two[1] / 20000.0, 0.5, 0.02);
  const auto one = drawn({.temperature = 1, .top_p = 1e-6});
  EXPECT_EQ(one[1], 20000) << "at least one is kept";
}

TEST(SamplerTest, TheSameSeedDrawsTheSame) {
  Sampler a({.seed = 9}), b({.seed = 9}), c({.seed = 10});
  int apart = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t id = a.next(kLogits);
    EXPECT_EQ(id, b.next(kLogits));
    apart += id != c.next(kLogits) ? 1 : 0;
  }
  EXPECT_GT(apart, 10);
}

TEST(SamplerTest, HugeLogitsDoNotOverflow) {
  Sampler sampler({.temperature = 0.01});
  const std::vector<float> logits = {-3e38f, 3e38f, 0};
  EXPECT_EQ(sampler.next(logits), 1u);
}

}  // namespace
}  // namespace shoal
