// When a person hears that gradients are late, and what is said then.
#include "runtime/launch/delay_watch.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

StageStatus status_of(std::uint16_t stage, std::optional<double> delay) {
  StageStatus status;
  status.stage = StageId(stage);
  status.delay = delay;
  return status;
}

TEST(DelayWatchTest, NamesTheLatestStageAndTheKeysOfItsRule) {
  RunConfig config;
  config.sync.rule = RuleId::kDiloco;
  config.pipeline.in_flight = 8;
  DelayWatch watch;
  EXPECT_FALSE(watch.largest());
  EXPECT_FALSE(watch.take({status_of(0, 0.5), status_of(1, std::nullopt)}, config)) << "not above the bound";
  EXPECT_EQ(watch.largest(), 0.5);
  const auto warning = watch.take({status_of(0, 0.25), status_of(1, 0.75)}, config);
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("stage 1 are 0.75 inner steps late"), std::string::npos) << *warning;
  EXPECT_NE(warning->find("[pipeline] in_flight (now 8)"), std::string::npos) << *warning;
  EXPECT_NE(warning->find("raise [sync] inner_batch"), std::string::npos) << *warning;
  EXPECT_NE(warning->find("[sync] mode = \"drain\""), std::string::npos) << *warning;
  EXPECT_FALSE(watch.take({status_of(0, 2)}, config)) << "said once";
  EXPECT_EQ(watch.largest(), 2);
  EXPECT_FALSE(watch.take({status_of(0, std::nullopt)}, config));
  EXPECT_EQ(watch.largest(), 2) << "of a stage without peers the last word stands";
  config.sync.rule = RuleId::kAllreduce;
  const auto overlap = DelayWatch().take({status_of(0, 1)}, config);
  ASSERT_TRUE(overlap);
  EXPECT_NE(overlap->find("[sync] mode = \"drain\""), std::string::npos) << *overlap;
}

}  // namespace
}  // namespace shoal
