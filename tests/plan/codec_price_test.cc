#include "runtime/plan/codec_price.h"

#include <gmock/gmock.h>

#include "tests/plan/small_run.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

RunConfig with_codecs(std::vector<Auto<CodecId>> forward, std::vector<Auto<CodecId>> backward) {
  RunConfig config = small_run();
  config.pipeline.stages = 4;
  config.wire.forward = {.codecs = std::move(forward)};
  config.wire.backward = {.codecs = std::move(backward)};
  return config;
}

TEST(CodecPriceTest, WhatWasSeenToCostLittleIsNotWarnedOf) {
  for (const CodecId codec : {CodecId::kRaw, CodecId::kBf16, CodecId::kFp16, CodecId::kInt8, CodecId::kInt4,
                              CodecId::kInt4Hadamard, CodecId::kAq4}) {
    EXPECT_EQ(codec_warning(with_codecs({codec}, {CodecId::kInt8})), std::nullopt) << static_cast<int>(codec);
    EXPECT_EQ(codec_warning(with_codecs({codec}, {{}})), std::nullopt) << static_cast<int>(codec);
    if (is_delta(codec)) continue;
    EXPECT_EQ(codec_warning(with_codecs({CodecId::kInt8}, {codec})), std::nullopt) << static_cast<int>(codec);
  }
}

TEST(CodecPriceTest, APairThatWasMeasuredIsNamedWithItsPriceAlone) {
  const auto of_int2 = codec_warning(with_codecs({CodecId::kInt2}, {CodecId::kInt2}));
  ASSERT_TRUE(of_int2);
  EXPECT_THAT(*of_int2, AllOf(HasSubstr("[wire] has int2 both ways."),
                              HasSubstr("four stages int2 both ways cost 35 % of the loss"),
                              HasSubstr("docs/RESULTS.md"), HasSubstr("HINT: int8"), Not(HasSubstr("int4"))));
  const auto of_int4 = codec_warning(with_codecs({CodecId::kInt4}, {CodecId::kInt4}));
  ASSERT_TRUE(of_int4);
  EXPECT_THAT(*of_int4,
              AllOf(HasSubstr("four stages int4 both ways cost 3 % of the loss"), Not(HasSubstr("hadamard"))));
}

TEST(CodecPriceTest, OfAnotherPairWhatIsKnownOfEitherDirectionIsTold) {
  const auto both = codec_warning(with_codecs({CodecId::kAq2}, {CodecId::kInt2}));
  ASSERT_TRUE(both);
  EXPECT_THAT(*both, AllOf(HasSubstr("[wire] has aq2 forward with int2 backward."),
                           HasSubstr("stages int2 both ways cost 35 %, raw forward with int2 backward cost 15 %, "
                                     "aq2 forward with int4 backward cost 4 %, aq2 forward with int8 backward cost 2 %"
                                     " of the loss")));
  const auto forward = codec_warning(with_codecs({CodecId::kInt2}, {{}}));
  ASSERT_TRUE(forward);
  EXPECT_THAT(*forward, AllOf(HasSubstr("[wire] has int2 forward with raw backward."),
                              HasSubstr("int2 both ways cost 35 %, int2 forward with int4 backward cost 12 % of")));
}

TEST(CodecPriceTest, OneEdgeIsEnough) {
  RunConfig config = with_codecs({CodecId::kInt8, CodecId::kInt2, CodecId::kInt8}, {CodecId::kInt8});
  config.wire.forward.per_stage = true;
  EXPECT_TRUE(codec_warning(config));
  config =
      with_codecs({CodecId::kInt4, CodecId::kInt8, CodecId::kInt8}, {CodecId::kInt8, CodecId::kInt8, CodecId::kInt2});
  config.wire.forward.per_stage = config.wire.backward.per_stage = true;
  EXPECT_TRUE(codec_warning(config));
  config.wire.backward.codecs.back() = CodecId::kInt4;  // four bits forward over one edge, backward over another
  EXPECT_EQ(codec_warning(config), std::nullopt);
}

TEST(CodecPriceTest, WhereNothingCrossesOrIsLearnedNothingIsSaid) {
  RunConfig config = with_codecs({CodecId::kInt2}, {CodecId::kInt2});
  config.pipeline.stages = 1;
  EXPECT_EQ(codec_warning(config), std::nullopt);
  config.pipeline.stages = 4;
  config.executor.kind = ExecutorKind::kPaced;
  EXPECT_EQ(codec_warning(config), std::nullopt);
}

}  // namespace
}  // namespace shoal
