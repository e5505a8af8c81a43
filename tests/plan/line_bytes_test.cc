#include "runtime/plan/line_bytes.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "compression/codec.h"
#include "runtime/plan/split_limits.h"
#include "tests/plan/narrow_run.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr double kInt8 = 1 + 4.0 / 64;  // bytes a value, with the scale of every 64

TEST(LineBytesTest, AnEdgeHasTheBoundarysValuesInItsCodecsAndTheToken) {
  RunConfig config = narrow_run(16);
  config.wire.backward = {.codecs = {CodecId::kRaw, CodecId::kInt8, CodecId::kRaw}, .per_stage = true};
  const std::vector<LineBytes> lines = line_bytes(config);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_NEAR(lines[0].forward, 16 * kInt8 + 1, 0.5) << "a frame's header is for 256 tokens";
  EXPECT_NEAR(lines[0].backward, 4 * 16, 0.5);
  EXPECT_NEAR(lines[1].backward, 16 * kInt8, 0.5);
  EXPECT_EQ(lines[3].forward + lines[3].backward, 0);
  EXPECT_NEAR(line_bytes(narrow_run(0))[0].forward, 128 * kInt8 + 1, 0.5);
}

TEST(LineBytesTest, APeerSendsAndGetsOverBothOfItsEdges) {
  const std::vector<LineBytes> lines = line_bytes(narrow_run(16));
  EXPECT_EQ(lines[0].up, lines[0].forward);
  EXPECT_EQ(lines[0].down, lines[0].backward);
  EXPECT_EQ(lines[1].up, lines[1].forward + lines[0].backward);
  EXPECT_EQ(lines[1].down, lines[1].backward + lines[0].forward);
  EXPECT_EQ(lines[3].up, lines[2].backward);
  EXPECT_EQ(lines[3].down, lines[2].forward);
}

TEST(LineBytesTest, AMemberSendsAPartAndASumToEachOtherOneARound) {
  RunConfig config = narrow_run(16);
  EXPECT_EQ(round_bytes(config)[1], 0) << "one replica has none to agree with";
  config.sync.inner_steps = 10;
  config.sync.inner_batch = 8 * config.targets_per_microbatch();
  for (const std::uint16_t replicas : {2, 4}) {
    config.pipeline.replicas = replicas;
    const double tokens = 10.0 * static_cast<double>(config.sync.inner_batch);
    const double parameters = static_cast<double>(payload_bytes(config)[1]) / sizeof(float);
    EXPECT_NEAR(round_bytes(config)[1], 2.0 * (replicas - 1) / replicas * parameters * kInt8 / tokens, 0.01);
  }
  const double often = round_bytes(config)[1];
  config.sync.inner_steps = 30;
  EXPECT_NEAR(round_bytes(config)[1], often / 3, 1e-9 * often);
}

// The figures that made a narrow boundary worth while: 2 x 1.0625 x 2048 bytes a token at a middle peer.
TEST(LineBytesTest, TwentyMegabitsCarryThirtyTimesAsManyTokensOfAThirtySecond) {
  EXPECT_NEAR(carried_tokens(narrow_run(0, 2048), 2.5e6, {}), 574, 1);
  EXPECT_NEAR(carried_tokens(narrow_run(64, 2048), 2.5e6, {}), 18'382, 300);
  const std::vector<double> rounds(4, 448);
  EXPECT_NEAR(carried_tokens(narrow_run(64, 2048), 2.5e6, rounds), 4'281, 30);
}

TEST(LineBytesTest, TheWidestBoundaryIsTheLastThatFits) {
  RunConfig config = narrow_run(16);
  config.pipeline.replicas = 2;
  const std::vector<double> rounds = round_bytes(config);
  const double line = 1e5;
  for (const double beside_rounds : {40.0, 80.0, 120.0}) {  // bytes of a token
    const double tokens = line / (*std::ranges::max_element(rounds) + beside_rounds);
    const std::uint32_t widest = widest_boundary(config, line, tokens);
    ASSERT_GT(widest, 0u) << tokens;
    ASSERT_LT(widest, 128u) << tokens;
    RunConfig at = config;
    at.model.boundary = widest;
    EXPECT_GE(carried_tokens(at, line, rounds), tokens);
    at.model.boundary = widest + 1;
    EXPECT_LT(carried_tokens(at, line, rounds), tokens);
  }
  EXPECT_EQ(widest_boundary(config, line, 1), 128u) << "all values";
  EXPECT_EQ(widest_boundary(config, rounds[0], 1), 0u) << "rounds take it all";
}

TEST(LineBytesTest, RoundsThatAreMoreThanHopsAreWarnedOfWithWhatMakesThemFewer) {
  RunConfig config = narrow_run(16);
  EXPECT_EQ(round_warning(config), std::nullopt) << "one replica";
  config.pipeline.replicas = 2;
  config.sync.inner_steps = 10;
  config.sync.inner_batch = 1024;
  const auto warning = round_warning(config);
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, AllOf(HasSubstr("a member of stage "), HasSubstr("bytes a token in rounds"),
                              HasSubstr("HINT: raise [sync] inner_steps (now 10), or give payload = \"int4\"")));
  config.sync.payload = PayloadCodec::kInt4;
  EXPECT_THAT(*round_warning(config), Not(HasSubstr("payload")));
  config.sync.inner_steps = 10'000;
  EXPECT_EQ(round_warning(config), std::nullopt);
  config.sync.inner_steps = 10;
  config.sync.rule = RuleId::kAllreduce;
  EXPECT_THAT(*round_warning(config), HasSubstr("raise [sync] microbatches_per_step (now "));
}

TEST(LineBytesTest, OfAPlainRunsRoundsNothingIsSaid) {
  RunConfig config = narrow_run(0);
  config.pipeline.replicas = 2;
  config.sync.inner_steps = 1;
  config.sync.inner_batch = 256;
  EXPECT_GT(round_bytes(config)[1], line_bytes(config)[1].up);
  EXPECT_EQ(round_warning(config), std::nullopt);
}

}  // namespace
}  // namespace shoal
