// Hundreds of seeds of faults against the checks of hop_world.h.
#include <gtest/gtest.h>

#include "hop_world.h"

namespace shoal::hop {
namespace {

Options drawn(std::uint64_t seed, bool faults) {
  Rng rng = Rng(seed).fork("options");
  Options options;
  options.seed = seed;
  options.stages = static_cast<std::uint16_t>(2 + rng.below(2));
  options.replicas = 1 + rng.below(3);
  options.microbatches = 8 + rng.below(12);
  options.in_flight = 2 + rng.below(6);
  options.credits = 2 + rng.below(6);
  options.inner_batch = 1 + rng.below(4);
  options.slow_chance = rng.chance(0.5) ? 0.05 : 0;
  if (rng.chance(0.5)) options.slow_job = 6s;
  if (rng.chance(0.3)) options.step_size = 1 + rng.below(5);
  if (!faults) return options;
  options.faults = 1 + rng.below(8);
  options.trainer_faults = rng.chance(0.5);
  return options;
}

std::string report(const World& world) {
  std::string text = "seed " + std::to_string(world.options().seed);
  for (const std::string& violation : world.violations()) text += "\n  " + violation;
  return text;
}

TEST(RandomSwarmTest, CountsEachMicrobatchOnceUnderFaults) {
  std::uint64_t undone = 0, joined = 0, lost = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    World world(drawn(seed, true));
    ASSERT_TRUE(world.run()) << report(world);
    undone += world.count("undone");
    joined += world.count("joined");
    lost += world.lost().size();
  }
  EXPECT_GT(undone, 100u);  // the seeds reach what they are there for
  EXPECT_GT(joined, 20u);
  EXPECT_GT(lost, 20u);
}

TEST(RandomSwarmTest, ListsNothingWhileOnlyHopsAreSlow) {
  for (std::uint64_t seed = 1001; seed <= 1100; ++seed) {
    World world(drawn(seed, false));
    ASSERT_TRUE(world.run()) << report(world);
  }
}

TEST(RandomSwarmTest, CountsOnceWhenBasesAreMissingUnderFaults) {
  std::uint64_t asked = 0, sent = 0;
  for (std::uint64_t seed = 2001; seed <= 2200; ++seed) {
    Options options = drawn(seed, seed % 2 == 0);
    options.base_lost = 0.5;
    World world(options);
    ASSERT_TRUE(world.run()) << report(world);
    asked += world.count("need_key_frame");
    sent += world.count("key_frame");
  }
  EXPECT_GT(asked, 1000u);
  EXPECT_GT(sent, 1000u);
}

TEST(RandomSwarmTest, SameSeedIsTheSameRun) {
  for (const std::uint64_t seed : {3u, 4u, 5u}) {
    World first(drawn(seed, true)), second(drawn(seed, true));
    ASSERT_TRUE(first.run());
    ASSERT_TRUE(second.run());
    EXPECT_EQ(first.trace(), second.trace());
    EXPECT_EQ(first.turns(), second.turns());
    World other(drawn(seed + 100, true));
    (void)other.run();
    EXPECT_NE(first.trace(), other.trace());
  }
}

}  // namespace
}  // namespace shoal::hop
