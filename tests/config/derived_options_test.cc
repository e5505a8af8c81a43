// Rate, warm-up and batches that a run file leaves at "auto".
#include "runtime/config/derived_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using ::testing::HasSubstr;

struct Setting {
  std::uint64_t tokens = 1'000'000;
  int dim = 64, replicas = 1;
  std::string more{};
};

Result<RunConfig> config_of(const Setting& s) {
  const std::string end = s.tokens > 0 ? "[end]\ntokens = " + std::to_string(s.tokens) + "\n" : "";
  return parse_config("[model]\nlayers = 4\ndim = " + std::to_string(s.dim) +
                          "\nheads = 4\npositions = 64\n[data]\npath = \"text\"\n[pipeline]\nstages = 4\nreplicas = " +
                          std::to_string(s.replicas) + "\n" + end + s.more,
                      "run.toml");
}

RunConfig of(const Setting& setting) {
  auto config = config_of(setting);
  EXPECT_TRUE(config.ok()) << config.error().message;
  return *std::move(config);
}

TEST(DerivedOptionsTest, TheBatchOfAllReplicasFollowsTheLengthOfTheRun) {
  EXPECT_EQ(of({.tokens = 1'000'000}).sync.inner_batch, 8u * 192);                 // 1546 targets
  EXPECT_EQ(of({.tokens = 1'000'000, .replicas = 2}).sync.inner_batch, 12u * 64);  // 773 each
  EXPECT_EQ(of({.tokens = 1'000'000'000}).sync.inner_batch, 312u * 256);           // 79,900
  EXPECT_EQ(of({.tokens = 1'000'000}).sync.microbatches_per_step, 8u);
}

TEST(DerivedOptionsTest, EveryReplicaHasAMicrobatchOfAStep) {
  const RunConfig config = of({.tokens = 10'000, .replicas = 8});
  EXPECT_EQ(config.sync.inner_batch, 64u);
  EXPECT_EQ(config.sync.microbatches_per_step, 8u);
}

TEST(DerivedOptionsTest, WithoutTokensOfAnEndTheBatchIsOfTheReplicas) {
  EXPECT_EQ(of({.tokens = 0}).sync.inner_batch, 8192u);
  EXPECT_EQ(of({.tokens = 0, .replicas = 2, .more = "[end]\nsteps = 1000\n"}).sync.inner_batch, 8192u);
}

TEST(DerivedOptionsTest, AnyLengthAndNumberOfReplicasIsARunThatTheChecksTake) {
  for (const std::uint64_t tokens : {std::uint64_t{1}, std::uint64_t{1'000'000'000'000}, std::uint64_t{1} << 59})
    for (const int replicas : {1, 3, 256})
      for (const char* rule : {"[sync]\nrule = \"diloco\"\n", "[sync]\nrule = \"allreduce\"\n"}) {
        const auto config = config_of({.tokens = tokens, .replicas = replicas, .more = rule});
        EXPECT_TRUE(config.ok()) << tokens << " tokens, " << replicas << " replicas: " << config.error().message;
      }
}

TEST(DerivedOptionsTest, TheRateFallsWithTheFourthRootOfTheParameters) {
  const double small = of({.dim = 64}).optimizer.lr, large = of({.dim = 256}).optimizer.lr;  // 16 times as many
  EXPECT_NEAR(small / large, 2, 0.1);
  EXPECT_NEAR(large, 1.4e-3, 0.1e-3);
}

TEST(DerivedOptionsTest, WhatIsGivenIsLeftAlone) {
  const RunConfig config = of({.more = "[optimizer]\nlr = 6e-4\n[schedule]\nwarmup_tokens = 0\n[sync]\ninner_batch = "
                                       "300\nmicrobatches_per_step = 5\n"});
  EXPECT_EQ(config.optimizer.lr, 6e-4);
  EXPECT_EQ(config.schedule.warmup_tokens, 0u);
  EXPECT_EQ(config.sync.inner_batch, 300u);
  EXPECT_EQ(config.sync.microbatches_per_step, 5u);
}

TEST(DerivedOptionsTest, AWarmUpIsFortyStepsWithinBounds) {
  EXPECT_EQ(of({.tokens = 1'000'000}).schedule.warmup_tokens, 40u * 1536 - 1);  // 2 / (1 - 0.95), rounded down
  EXPECT_EQ(of({.tokens = 100'000}).schedule.warmup_tokens, 10'000u);
  EXPECT_EQ(of({.tokens = 10'000'000'000}).schedule.warmup_tokens, 200'000'000u);
}

TEST(DerivedOptionsTest, AManifestHasTheNumbersAndNoAuto) {
  const RunConfig config = of({.replicas = 2});
  const auto text = canonical_text(config);
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("inner_batch = 768\n"));
  EXPECT_THAT(*text, HasSubstr("warmup_tokens = 61439\n"));
  EXPECT_THAT(*text, HasSubstr("lr = 0.0027\n"));
  const auto read = parse_manifest(*text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->sync.inner_batch, 768u);
}

TEST(DerivedOptionsTest, AManifestThatLeavesANumberToItsReaderIsRefused) {
  std::string text = *canonical_text(of({}));
  const std::string given = "lr = 0.0027";
  text.replace(text.find(given), given.size(), "lr = \"auto\"");
  EXPECT_FALSE(parse_manifest(text).ok());
}

TEST(DerivedOptionsTest, AWordThatIsNotAutoIsRefused) {
  const auto config = config_of({.more = "[optimizer]\nlr = \"automatic\"\n"});
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message, HasSubstr("[optimizer] lr = \"automatic\" is not known: it is \"auto\""));
}

TEST(DerivedOptionsTest, FewStepsAreWarnedOfWithWhatMakesMore) {
  EXPECT_FALSE(few_steps_warning(of({.tokens = 1'000'000})));
  const auto warning = few_steps_warning(of({.tokens = 1'000'000, .more = "[sync]\ninner_batch = 8192\n"}));
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, HasSubstr("has 122 inner steps"));
  EXPECT_THAT(*warning, HasSubstr("inner_batch (now 8192)"));
  EXPECT_FALSE(few_steps_warning(of({.tokens = 0})));
}

}  // namespace
}  // namespace shoal
