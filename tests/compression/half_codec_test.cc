#include "compression/half_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compression/distortion.h"
#include "tests/compression/tensors.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> round_trip(CodecId id, const HostTensor& tensor) {
  const Result<Bytes> frame = codec_for(id).encode(tensor.view(), TensorRole::kActivation);
  const Result<HostTensor> decoded = decode_tensor(*frame, DType::kF32, tensor.shape);
  return {decoded->f32().begin(), decoded->f32().end()};
}

Distortion distortion_of(CodecId id, const HostTensor& tensor) {
  Distortion distortion;
  distortion.add(tensor.f32(), round_trip(id, tensor));
  return distortion;
}

TEST(HalfCodecTest, CostsTwoBytesAnElement) {
  for (const CodecId id : {CodecId::kBf16, CodecId::kFp16})
    EXPECT_EQ(codec_for(id).frame_bytes({4, 256, 256}, DType::kF32), 64u + 2 * 262144u);
}

// The error of a significand of p bits is uniform below half a unit, and values spread over a binade: 6.02 p + 3 dB or
// so for normal values.
TEST(HalfCodecTest, DistortionOfNormalValuesIsBounded) {
  const HostTensor tensor = normal_tensor({64, 1024}, 42);
  const Distortion bf16 = distortion_of(CodecId::kBf16, tensor), fp16 = distortion_of(CodecId::kFp16, tensor);
  EXPECT_GT(bf16.snr_db(), 54.0) << bf16.text();
  EXPECT_LT(bf16.snr_db(), 58.0) << bf16.text();
  EXPECT_GT(fp16.snr_db(), 72.0) << fp16.text();
  EXPECT_LT(fp16.snr_db(), 76.0) << fp16.text();
  for (const Distortion& distortion : {bf16, fp16}) {
    EXPECT_LT(std::abs(distortion.bias()), 5 * distortion.rms_error() / std::sqrt(65536.0)) << distortion.text();
    EXPECT_EQ(distortion.sign_flips() + distortion.rounded_to_zero(), 0u) << distortion.text();
  }
}

TEST(HalfCodecTest, SmallGradientsLiveInBf16AndDieInFp16) {
  std::vector<float> values(100);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1e-9f * static_cast<float>(i + 1);
  const HostTensor tensor = tensor_of({100}, values);
  EXPECT_EQ(distortion_of(CodecId::kBf16, tensor).rounded_to_zero(), 0u);
  EXPECT_GT(distortion_of(CodecId::kFp16, tensor).rounded_to_zero(), 20u);
}

TEST(HalfCodecTest, HoldsWhatIsBeyondTheLargest) {
  EXPECT_THAT(round_trip(CodecId::kFp16, tensor_of({3}, {1e6f, -65504.0f, 2.0f})), ElementsAre(65504, -65504, 2));
}

TEST(HalfCodecTest, NamesTheElementThatIsNotFinite) {
  std::vector<float> values(200, 1.0f);
  values[130] = -INFINITY;
  const HostTensor tensor = tensor_of({2, 100}, values);
  const Result<Bytes> frame = codec_for(CodecId::kFp16).encode(tensor.view(), TensorRole::kGradient);
  ASSERT_FALSE(frame.ok());
  EXPECT_THAT(frame.error().message, HasSubstr("codec fp16: element 130 of (2, 100) is -inf"));
}

TEST(HalfCodecTest, RefusesAFrameThatHoldsWhatIsNotFinite) {
  for (const CodecId id : {CodecId::kBf16, CodecId::kFp16}) {
    const Result<Bytes> frame = codec_for(id).encode(normal_tensor({10}, 3).view(), TensorRole::kActivation);
    std::vector<std::uint8_t> changed = bytes_in(*frame);
    changed[64 + 2 * 7 + 1] = 0xff;
    changed[64 + 2 * 7] = 0x80;
    const Result<HostTensor> decoded = decode_tensor(resealed(changed), DType::kF32, {10});
    ASSERT_EQ(decoded.code(), ErrorCode::kNonFinite);
    EXPECT_THAT(decoded.error().message, HasSubstr("frame: element 7 of (10) is"));
  }
}

}  // namespace
}  // namespace shoal
