#include "bench/hop_setting.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "bench/star.h"
#include "bench/thread_times.h"
#include "common/os/thread_loop.h"
#include "runtime/config/config.h"

namespace shoal {
namespace {

TEST(HopSettingTest, ItsRunFileIsOneThatShoalReads) {
  HopSetting setting;
  setting.text = "/a \"quoted\" place/text";
  setting.codec = "int8";
  const auto config = parse_config(hop_toml(setting), "hop");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->data.paths.front(), setting.text);
  EXPECT_EQ(config->wire.forward.at(StageId(0)), CodecId::kInt8);
  EXPECT_EQ(config->wire.backward.at(StageId(0)), CodecId::kInt8);
  EXPECT_EQ(config->sync.rule, RuleId::kAllreduce);
  EXPECT_EQ(config->pipeline.stages, 4);
  EXPECT_EQ(config->end_targets(), 0u);  // whoever measures ends it
}

TEST(HopSettingTest, LinkBoundCountsBothDirectionsOfAStageInTheMiddle) {
  HopSetting setting;
  EXPECT_NEAR(link_bound(setting, 100e6), 100e6 / (2 * 32 * 256), 1e-6);  // bits a token: fp32, width 256, down and up
  setting.codec = "int8";
  EXPECT_NEAR(link_bound(setting, 20e6), 20e6 / (2 * 8.5 * 256), 1e-6);
  setting.codec = "int4";
  EXPECT_NEAR(link_bound(setting, 20e6), 20e6 / (2 * 4.5 * 256), 1e-6);
  setting.codec = "int8";
  setting.stages = 2;
  EXPECT_NEAR(link_bound(setting, 20e6), 20e6 / (8.5 * 256), 1e-6);
}

TEST(StarTest, NetIsARateAndADelayAndNothingElse) {
  const auto net = parse_net("20mbit,50", 5);
  ASSERT_TRUE(net.ok());
  EXPECT_EQ(net->hosts, 5);
  EXPECT_DOUBLE_EQ(net->bits_per_s, 20e6);
  EXPECT_DOUBLE_EQ(net->one_way_ms, 50);
  EXPECT_TRUE(parse_net("100,20ms", 5).ok());
  for (const char* wrong :
       {"", "100", "100,", ",20", "100mbit", "0,20", "-5,20", "100,-1", "100,20,3", "100gbit,20", "x,y", "100,20s"})
    EXPECT_EQ(parse_net(wrong, 5).code(), ErrorCode::kInput) << wrong;
}

TEST(ThreadTimesTest, WorkOfThisThreadIsSeen) {
  const ThreadTimes before = thread_times(getpid());
  volatile double sum = 0;
  for (const TimePoint end = monotonic_now() + 60ms; monotonic_now() < end;) sum = sum + 1;
  const ThreadTime worked = total(difference(thread_times(getpid()), before));
  EXPECT_GT(worked.on_core_s, 0.002);  // the rest may have gone to others
  EXPECT_LT(worked.on_core_s, 60);
  EXPECT_TRUE(thread_times(-1).empty());
}

}  // namespace
}  // namespace shoal
