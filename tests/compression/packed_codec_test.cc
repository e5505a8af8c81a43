#include "compression/packed_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compression/distortion.h"
#include "tests/compression/tensors.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

Distortion distortion_of(CodecId id, const HostTensor& tensor, std::uint64_t seed = 0) {
  const Result<Bytes> frame = codec_for(id).encode(tensor.view(), TensorRole::kActivation, nullptr, seed);
  const Result<HostTensor> decoded = decode_tensor(*frame, DType::kF32, tensor.shape);
  Distortion distortion;
  distortion.add(tensor.f32(), decoded->f32());
  return distortion;
}

TEST(PackedCodecTest, CostsFourOrTwoBitsAndHalfABitForScales) {
  const auto bytes = [](CodecId id, std::int64_t count) {
    return codec_for(id).frame_bytes({count}, DType::kF32) - 64;
  };
  EXPECT_EQ(bytes(CodecId::kInt4, 3200), 3200u * 9 / 16);
  EXPECT_EQ(bytes(CodecId::kInt4Hadamard, 3200), 3200u * 9 / 16 + 8);
  EXPECT_EQ(bytes(CodecId::kInt2, 3200), 3200u * 5 / 16);
  EXPECT_EQ(bytes(CodecId::kInt4, 33), 36u);  // whole tiles
  EXPECT_EQ(bytes(CodecId::kInt2, 1), 10u);
}

// absmax of 32 normals is about 2.4. int4: step 2.4/7, rms error = step / sqrt(12): 20 dB; rounding by chance costs 3
// dB of it. int2, with a scale for each tile: a little above the best four levels for all (9.25 dB; Max 1960).
TEST(PackedCodecTest, DistortionOfNormalValuesIsBounded) {
  const HostTensor tensor = normal_tensor({64, 1024}, 42);
  const Distortion int4 = distortion_of(CodecId::kInt4, tensor), int2 = distortion_of(CodecId::kInt2, tensor);
  const Distortion rotated = distortion_of(CodecId::kInt4Hadamard, tensor, 5);
  EXPECT_GT(int4.snr_db(), 19.5) << int4.text();
  EXPECT_LT(int4.snr_db(), 21.0) << int4.text();
  EXPECT_GT(rotated.snr_db(), 16.5) << rotated.text();
  EXPECT_LT(rotated.snr_db(), 18.0) << rotated.text();
  EXPECT_GT(int2.snr_db(), 9.0) << int2.text();
  EXPECT_LT(int2.snr_db(), 10.0) << int2.text();
  for (const Distortion& distortion : {int4, rotated, int2})
    EXPECT_LT(std::abs(distortion.bias()), 5 * distortion.rms_error() / std::sqrt(65536.0)) << distortion.text();
  EXPECT_EQ(int4.sign_flips() + int2.sign_flips(), 0u);
  EXPECT_EQ(int2.rounded_to_zero(), 0u);
}

// Without the rotation an outlier's tile keeps nothing but the outlier.
TEST(PackedCodecTest, TheRotationSharesAnOutlier) {
  const HostTensor normal = normal_tensor({64, 1024}, 7);
  std::vector<float> values(normal.f32().begin(), normal.f32().end());
  for (std::size_t i = 0; i < values.size(); i += 32) values[i + i / 32 % 32] = 20.0f;
  const HostTensor tensor = tensor_of({64, 1024}, values);
  const Distortion plain = distortion_of(CodecId::kInt4, tensor),
                   rotated = distortion_of(CodecId::kInt4Hadamard, tensor);
  EXPECT_GT(plain.rounded_to_zero(), 50'000u) << plain.text();
  EXPECT_LT(rotated.rounded_to_zero(), 6'000u) << rotated.text();
  EXPECT_LT(rotated.rms_error(), 0.75 * plain.rms_error()) << rotated.text() << "; " << plain.text();
}

TEST(PackedCodecTest, NamesTheTileThatIsNotFinite) {
  std::vector<float> values(200, 1.0f);
  values[195] = NAN;
  const HostTensor tensor = tensor_of({2, 100}, values);
  const Result<Bytes> frame = codec_for(CodecId::kInt2).encode(tensor.view(), TensorRole::kGradient);
  ASSERT_EQ(frame.code(), ErrorCode::kNonFinite);
  EXPECT_THAT(frame.error().message, HasSubstr("codec int2: NaN or infinity within elements 192 to 199 of (2, 100)"));
}

TEST(PackedCodecTest, RefusesScalesThatNoEncoderWrites) {
  for (const CodecId id : {CodecId::kInt4, CodecId::kInt4Hadamard, CodecId::kInt2}) {
    const std::size_t at = 64 + (id == CodecId::kInt4Hadamard ? 8 : 0) + 2;  // of the second tile
    const Result<Bytes> frame = codec_for(id).encode(normal_tensor({40}, 3).view(), TensorRole::kActivation);
    const auto decoded = [&](std::uint32_t scale) {
      std::vector<std::uint8_t> changed = bytes_in(*frame);
      changed[at] = static_cast<std::uint8_t>(scale);
      changed[at + 1] = static_cast<std::uint8_t>(scale >> 8);
      return decode_tensor(resealed(changed), DType::kF32, {40});
    };
    for (const std::uint32_t not_finite : {0x7f80u, 0x7fffu, 0xff80u, 0xffffu})
      EXPECT_EQ(decoded(not_finite).code(), ErrorCode::kNonFinite) << not_finite;
    for (const std::uint32_t out_of_range : {0x8000u, 0xbf80u, 0x7f7fu, 0x0001u, 0x007fu})
      EXPECT_EQ(decoded(out_of_range).code(), ErrorCode::kMalformed) << out_of_range;
    EXPECT_THAT(decoded(0x7f7f).error().message, HasSubstr("frame: the scale of tile 1 is out of range"));
    EXPECT_TRUE(decoded(0).ok());
    EXPECT_TRUE(decoded(0x4000).ok());
  }
}

}  // namespace
}  // namespace shoal
