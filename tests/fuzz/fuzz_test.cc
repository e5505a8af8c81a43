// Every target in every build: its seeds, what is cut off them, and what a generator changes in them. libFuzzer goes
// further with the same targets (scripts/fuzz); what it finds becomes a named test here.
#include <gtest/gtest.h>

#include <algorithm>

#include "common/rng.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

std::vector<Target> all_targets() {
#define SHOAL_FUZZ_ROW(target) target,
  return {SHOAL_FUZZ_TARGETS(SHOAL_FUZZ_ROW)};
#undef SHOAL_FUZZ_ROW
}

class FuzzTest : public testing::TestWithParam<Target> {};

TEST_P(FuzzTest, ItsSeedsAreAccepted) {
  const std::vector<Bytes> seeds = GetParam().seeds();
  EXPECT_FALSE(seeds.empty());
  for (std::size_t i = 0; i < seeds.size(); ++i) EXPECT_TRUE(GetParam().take(seeds[i])) << "seed " << i;
}

TEST_P(FuzzTest, WhatIsCutOffIsTaken) {
  constexpr std::size_t kCutsMax = 500;
  for (const Bytes& seed : GetParam().seeds()) {
    const std::size_t step = std::max<std::size_t>(1, seed.size() / kCutsMax);
    for (std::size_t size = 0; size < seed.size(); size += step) (void)GetParam().take(seed.view().first(size));
  }
  EXPECT_FALSE(GetParam().take({}));
}

TEST_P(FuzzTest, WhatIsChangedIsTaken) {
  constexpr int kRounds = 500;
  Rng rng(1);
  for (const Bytes& seed : GetParam().seeds()) {
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::uint8_t> bytes = copy_of(seed);
      for (std::uint64_t edits = 1 + rng.below(4); edits > 0; --edits)
        bytes[rng.below(bytes.size())] = static_cast<std::uint8_t>(rng.below(256));
      (void)GetParam().take(bytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzTest, testing::ValuesIn(all_targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace shoal::fuzz
