#include "runtime/plan/split_limits.h"

#include <gmock/gmock.h>

namespace shoal {
namespace {

using testing::HasSubstr;

RunConfig config_of(std::uint32_t layers, std::uint32_t dim, std::uint16_t stages, std::uint16_t replicas) {
  RunConfig config;
  config.model = {{.layers = layers, .dim = dim, .heads = 8, .positions = 256, .vocabulary = 256}, {}, {}};
  config.pipeline.stages = stages;
  config.pipeline.replicas = replicas;
  return config;
}

std::string why(const RunConfig& config) {
  const Status status = check_split_limits(config);
  return status.ok() ? "fits" : status.error().message;
}

TEST(SplitLimitsTest, ARoundsPartMustFitOneTransfer) {
  // 12 d^2 a layer: 16 layers of 2048 are 805 M parameters, 1.50 GiB a half.
  EXPECT_THAT(why(config_of(16, 2048, 1, 2)), HasSubstr("a round among 2 replicas sends 1.5"));
  EXPECT_THAT(why(config_of(16, 2048, 1, 2)), HasSubstr("HINT: raise [pipeline] stages"));
  EXPECT_EQ(why(config_of(16, 2048, 2, 2)), "fits");
  EXPECT_EQ(why(config_of(16, 2048, 1, 4)), "fits") << "more replicas, smaller parts";
}

// What fits the replicas that are expected need not fit those that stay.
TEST(SplitLimitsTest, AStageThatTwoReplicasCannotReduceIsSaidAtTheStart) {
  const auto said = split_warnings(config_of(16, 2048, 1, 4));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("stage 0 makes rounds among 4 replicas or more, or of one alone: among 2 a part"));
  EXPECT_TRUE(split_warnings(config_of(16, 2048, 2, 2)).empty());
}

TEST(SplitLimitsTest, AStateImageMustFitWhatAJoinerFetches) {
  RunConfig config = config_of(16, 2048, 1, 4);
  config.sync.rule = RuleId::kAllreduce;
  EXPECT_THAT(why(config), HasSubstr("its state is 9.0"));
}

}  // namespace
}  // namespace shoal
