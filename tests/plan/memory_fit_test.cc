// What is left of a machine decides before anything is made.
#include "runtime/plan/memory_fit.h"

#include <gtest/gtest.h>

#include "runtime/plan/stage_memory.h"
#include "tests/plan/small_run.h"

namespace shoal {
namespace {

RunConfig some_config() {
  RunConfig config = small_run();
  config.pipeline.in_flight = std::uint32_t{64};
  return config;
}

TEST(MemoryFitTest, AStageThatDoesNotFitIsRefusedWithBothFigures) {
  const RunConfig config = some_config();
  const StageSpec spec = last_stage(config);
  const std::uint64_t least = process_bytes(config, spec, kCreditsLeast);
  const auto refused = credits_that_fit(least - 1, 16, config, spec);
  ASSERT_EQ(refused.code(), ErrorCode::kTooLarge);
  EXPECT_NE(refused.error().message.find("needs about " + std::to_string(least >> 20) + " MiB"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(credits_that_fit(least, 16, config, spec).value(), kCreditsLeast);
}

TEST(MemoryFitTest, WhereLittleIsLeftFewerMicrobatchesAreTaken) {
  const RunConfig config = some_config();
  const StageSpec spec = last_stage(config);
  EXPECT_EQ(credits_that_fit(process_bytes(config, spec, 10), 16, config, spec).value(), 10u);
  EXPECT_EQ(credits_that_fit(process_bytes(config, spec, 16), 16, config, spec).value(), 16u);
  EXPECT_EQ(credits_that_fit(UINT64_MAX, 16, config, spec).value(), 16u);
}

TEST(MemoryFitTest, ExecutorsThatNeedNoModelFitEverywhere) {
  RunConfig config = some_config();
  config.executor.kind = ExecutorKind::kInteger;
  EXPECT_EQ(credits_that_fit(0, 16, config, last_stage(config)).value(), 16u);
}

}  // namespace
}  // namespace shoal
