// Differences to a base: what they gain, and that a base of no use costs nothing.
#include "compression/delta_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compression/distortion.h"
#include "kernels/packed_rule.h"
#include "tests/compression/tensors.h"

namespace shoal {
namespace {

constexpr std::uint64_t kHash = 77;

class DeltaCodecTest : public ::testing::TestWithParam<CodecId> {
 protected:
  const Codec& codec() const { return codec_for(GetParam()); }
  const Codec& direct() const { return codec_for(GetParam() == CodecId::kAq4 ? CodecId::kInt4 : CodecId::kInt2); }
  HostTensor through(const HostTensor& tensor, const HostTensor& base) const {
    const BaseView view{base.view(), kHash};
    const Result<Bytes> frame = codec().encode(tensor.view(), TensorRole::kActivation, &view);
    return decode_tensor(*frame, DType::kF32, tensor.shape, &view).value();
  }
};

INSTANTIATE_TEST_SUITE_P(Codecs, DeltaCodecTest, ::testing::Values(CodecId::kAq4, CodecId::kAq2),
                         [](const auto& info) { return std::string(codec_for(info.param).name()); });

double snr(const HostTensor& sent, const HostTensor& got) {
  Distortion distortion;
  distortion.add(sent.f32(), got.f32());
  return distortion.snr_db();
}

// `share` of what is drawn anew beside the rest.
HostTensor near(const HostTensor& tensor, float share, std::uint64_t seed) {
  const HostTensor other = normal_tensor(tensor.shape, seed);
  std::vector<float> values(tensor.f32().begin(), tensor.f32().end());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += share * other.f32()[i];
  return tensor_of(tensor.shape, values);
}

TEST_P(DeltaCodecTest, ANearBaseGainsAsManyBitsAsItIsNear) {
  const HostTensor base = normal_tensor({64, 96}, 1);
  const HostTensor tensor = near(base, 0.1f, 2);
  const HostTensor plain =
      decode_tensor(*direct().encode(tensor.view(), TensorRole::kActivation), DType::kF32, tensor.shape).value();
  const double gained = snr(tensor, through(tensor, base)) - snr(tensor, plain);
  EXPECT_NEAR(gained, 20 * std::log10(1 / 0.1), 1.5);
}

TEST_P(DeltaCodecTest, AsItIsSentAgainAndAgainTheErrorFollowsTheChangeAndDoesNotGrow) {
  HostTensor base = normal_tensor({32, 64}, 1), tensor = base;
  double last = 0;
  for (std::uint64_t visit = 0; visit < 12; ++visit) {
    tensor = near(tensor, 0.05f, 10 + visit);
    base = through(tensor, base);
    last = snr(tensor, base);
  }
  EXPECT_GT(last, GetParam() == CodecId::kAq4 ? 40.0 : 30.0);
}

TEST_P(DeltaCodecTest, ABaseOfNoUseCostsNothing) {
  const HostTensor tensor = normal_tensor({40, 64}, 3);
  const HostTensor plain =
      decode_tensor(*direct().encode(tensor.view(), TensorRole::kActivation), DType::kF32, tensor.shape).value();
  for (const float size : {1.5f, 100.0f, 1e30f}) {
    std::vector<float> values(tensor.f32().size(), size);
    EXPECT_EQ(bytes_in(through(tensor, tensor_of(tensor.shape, values)).bytes), bytes_in(plain.bytes)) << size;
  }
}

TEST_P(DeltaCodecTest, EachRowGoesAsWhatIsSmaller) {
  const HostTensor tensor = normal_tensor({9, 33}, 4);
  std::vector<float> values(tensor.f32().begin(), tensor.f32().end());
  for (std::size_t row = 0; row < 9; ++row)
    for (std::size_t i = 0; i < 33; ++i) values[33 * row + i] = row % 2 == 0 ? values[33 * row + i] * 0.99f : -5.0f;
  const HostTensor base = tensor_of(tensor.shape, values);
  const BaseView view{base.view(), kHash};
  const Bytes frame = codec().encode(tensor.view(), TensorRole::kActivation, &view).value();
  EXPECT_EQ(frame.view()[64], 0b01010101);
  EXPECT_EQ(frame.view()[65], 0b1);
}

TEST_P(DeltaCodecTest, AnyRowLengthComesBack) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{31}, Shape{32}, Shape{33}, Shape{7, 1}, Shape{3, 5, 17},
                             Shape{2, 4096}, Shape{8, 3, 31}}) {
    const HostTensor base = normal_tensor(shape, 5);
    const HostTensor tensor = near(base, 0.01f, 6);
    const HostTensor got = through(tensor, base);
    for (std::size_t i = 0; i < got.f32().size(); ++i)
      EXPECT_NEAR(got.f32()[i], tensor.f32()[i], 0.05) << text_of(shape) << " " << i;
  }
}

TEST_P(DeltaCodecTest, WithoutItsBaseNothingIsSentAndNothingRead) {
  const HostTensor base = normal_tensor({4, 8}, 1), other = normal_tensor({8, 4}, 1);
  const BaseView view{base.view(), kHash}, named_otherwise{base.view(), kHash + 1}, misshapen{other.view(), kHash};
  EXPECT_EQ(codec().encode(base.view(), TensorRole::kActivation).code(), ErrorCode::kGone);
  EXPECT_EQ(codec().encode(base.view(), TensorRole::kActivation, &misshapen).code(), ErrorCode::kMalformed);
  const Bytes frame = codec().encode(base.view(), TensorRole::kActivation, &view).value();
  EXPECT_EQ(decode_tensor(frame, DType::kF32, {4, 8}).code(), ErrorCode::kGone);
  EXPECT_EQ(decode_tensor(frame, DType::kF32, {4, 8}, &named_otherwise).code(), ErrorCode::kGone);
  EXPECT_EQ(decode_tensor(frame, DType::kF32, {4, 8}, &misshapen).code(), ErrorCode::kMalformed);
  EXPECT_TRUE(decode_tensor(frame, DType::kF32, {4, 8}, &view).ok());
}

TEST_P(DeltaCodecTest, ADifferenceBeyondFp32GoesAsTheRowItself) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const HostTensor tensor = tensor_of({2}, {kMost, -kMost}), base = tensor_of({2}, {-kMost, kMost});
  const HostTensor got = through(tensor, base);
  for (const float value : got.f32()) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(DeltaCodecTest, ASumBeyondFp32IsRefused) {
  const HostTensor base = tensor_of({2}, {3e38f, 3e38f});
  const BaseView view{base.view(), kHash};
  std::vector<std::uint8_t> frame = bytes_in(codec().encode(base.view(), TensorRole::kActivation, &view).value());
  ASSERT_EQ(frame[64], 1) << "a difference";
  const std::uint32_t largest =
      packed_range(GetParam() == CodecId::kAq4 ? TileFormat::kInt4 : TileFormat::kInt2).scale_max;
  frame[65] = static_cast<std::uint8_t>(largest);
  frame[66] = static_cast<std::uint8_t>(largest >> 8);
  frame[67] = 0x77;  // far up, whatever the format is
  EXPECT_EQ(decode_tensor(resealed(frame), DType::kF32, {2}, &view).code(), ErrorCode::kNonFinite);
}

}  // namespace
}  // namespace shoal
