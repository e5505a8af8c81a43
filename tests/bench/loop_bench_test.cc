#include "bench/loop_bench.h"

#include <gtest/gtest.h>

#include "runtime/config/config.h"

namespace shoal {
namespace {

TEST(LoopBenchTest, ItsRunFileIsOneThatShoalReadsWithEveryDefault) {
  const auto config = parse_config(loop_toml({.state_mib = 3}), "loop");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->executor.state_mib, 3u);
  EXPECT_EQ(config->sync.rule, RuleId::kDiloco);
  EXPECT_EQ(config->sync.warm_steps, 0u);
  EXPECT_GT(config->microbatches_of_step(0), 0u) << "the trainer divides by it";
}

}  // namespace
}  // namespace shoal
