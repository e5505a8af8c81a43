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
  for (const CodecId codec : kCodecs) {
    if (codec == CodecId::kInt2 || codec == CodecId::kAq2) continue;
    EXPECT_EQ(codec_warning(with_codecs({codec}, {CodecId::kInt8})), std::nullopt) << static_cast<int>(codec);
    EXPECT_EQ(codec_warning(with_codecs({CodecId::kRaw}, {codec})), std::nullopt) << static_cast<int>(codec);
  }
}

TEST(CodecPriceTest, EachDearChoiceIsNamedWithWhatWasSeenWhereAndWhatToTake) {
  const auto of_int2 = codec_warning(with_codecs({CodecId::kInt2}, {CodecId::kInt2}));
  ASSERT_TRUE(of_int2);
  EXPECT_THAT(*of_int2,
              AllOf(HasSubstr("[wire] has int2."), HasSubstr("int2 cost 20 %"), HasSubstr("forward = \"int8\""),
                    HasSubstr("outside of this project"), Not(HasSubstr("9 %"))));
  const auto of_both = codec_warning(with_codecs({CodecId::kAq2}, {CodecId::kInt2}));
  ASSERT_TRUE(of_both);
  EXPECT_THAT(*of_both, AllOf(HasSubstr("aq2 and int2"), HasSubstr("cost 9 % of the loss;"), Not(HasSubstr("20 %"))));
  const auto of_aq2 = codec_warning(with_codecs({CodecId::kAq2}, {CodecId::kInt8}));
  ASSERT_TRUE(of_aq2);
  EXPECT_THAT(*of_aq2, AllOf(HasSubstr("[wire] has aq2."), HasSubstr("each direction has of that is not known")));
}

TEST(CodecPriceTest, OneEdgeIsEnough) {
  EXPECT_TRUE(codec_warning(with_codecs({CodecId::kInt8, CodecId::kInt2, CodecId::kInt8}, {CodecId::kInt8})));
  EXPECT_TRUE(codec_warning(with_codecs({CodecId::kInt8}, {CodecId::kInt8, CodecId::kInt8, CodecId::kInt2})));
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
