// What a real model learns when its stages send each other frames.
#include <gmock/gmock.h>

#include <cmath>

#include "common/rng.h"
#include "tests/torch/tiny_solo.h"

namespace shoal {
namespace {

constexpr std::uint64_t kEdges = 2, kEpochs = 3;

class WireSoloTest : public testing::Test {
 protected:
  WireSoloTest() {
    std::string text(2000, ' ');
    Rng rng(7);
    for (std::size_t i = 0; i < text.size(); ++i)  // a letter depends on the one before: there is something to learn
      text[i] = static_cast<char>('a' + (i == 0 ? 0 : (text[i - 1] - 'a' + static_cast<int>(rng.below(3))) % 20));
    config_ = tiny_solo(folder_, text, 3, 32);
    training_ = Samples::open(config_.text_files())->training();
    config_.end.tokens = kEpochs * training_ * config_.targets_per_microbatch();
  }

  SoloResult train(CodecId forward, CodecId backward, bool wire = true) {
    SoloOptions options;
    options.config = config_;
    options.config.wire.forward.codecs = {forward};
    options.config.wire.backward.codecs = {backward};
    options.factory = tiny_factory();
    options.wire = wire;
    return solo_of(options);
  }

  ScratchFolder folder_;
  RunConfig config_;
  std::uint64_t training_ = 0;  // samples
};

TEST_F(WireSoloTest, RawFramesChangeNothing) {
  const SoloResult plain = train(CodecId::kInt2, CodecId::kInt2, false), raw = train(CodecId::kRaw, CodecId::kRaw);
  EXPECT_EQ(raw.losses.steps(), plain.losses.steps());
  EXPECT_EQ(raw.validation_loss, plain.validation_loss);
  EXPECT_LT(raw.losses.last(), 0.8 * raw.losses.first()) << "it learns";
}

TEST_F(WireSoloTest, EachDirectionIsCodedAndInt8CostsLittle) {
  const SoloResult raw = train(CodecId::kRaw, CodecId::kRaw);
  const SoloResult forward = train(CodecId::kInt8, CodecId::kRaw), backward = train(CodecId::kRaw, CodecId::kInt8);
  for (const SoloResult* coded : {&forward, &backward}) {
    EXPECT_NE(coded->losses.steps(), raw.losses.steps());
    EXPECT_NEAR(coded->validation_loss, raw.validation_loss, 0.02 * raw.validation_loss);
  }
  // A first loss is of what crossed forward alone.
  EXPECT_NE(forward.losses.first(), raw.losses.first());
  EXPECT_EQ(train(CodecId::kInt2, CodecId::kRaw).losses.first(), train(CodecId::kInt2, CodecId::kInt2).losses.first());
}

TEST_F(WireSoloTest, DifferencesAreSentFromTheSecondEpochOn) {
  const SoloResult aq = train(CodecId::kAq4, CodecId::kRaw);
  ASSERT_TRUE(aq.traffic.has_value());
  EXPECT_EQ(aq.traffic->key_frames, kEdges * training_);
  EXPECT_EQ(aq.traffic->delta_frames, kEdges * training_ * (kEpochs - 1));
  EXPECT_EQ(aq.traffic->no_room, 0u);
}

TEST_F(WireSoloTest, WithoutRoomForBasesKeyFramesOfInt8CrossAlone) {
  config_.wire.base_mib = 0;
  const SoloResult aq = train(CodecId::kAq4, CodecId::kRaw), int8 = train(CodecId::kInt8, CodecId::kRaw);
  ASSERT_TRUE(aq.traffic.has_value());
  EXPECT_EQ(aq.traffic->delta_frames, 0u);
  EXPECT_EQ(aq.traffic->no_room, 2 * kEdges * training_ * kEpochs) << "at both ends";
  EXPECT_EQ(aq.losses.steps(), int8.losses.steps());
  EXPECT_EQ(aq.validation_loss, int8.validation_loss);
}

}  // namespace
}  // namespace shoal
