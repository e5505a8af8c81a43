#include "compression/int8_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "compression/distortion.h"
#include "kernels/int8_tiles.h"
#include "tests/compression/tensors.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Codec& int8() { return codec_for(CodecId::kInt8); }

std::vector<float> round_trip(const HostTensor& tensor) {
  const Result<Bytes> frame = int8().encode(tensor.view(), TensorRole::kActivation);
  const Result<HostTensor> decoded = decode_tensor(*frame, DType::kF32, tensor.shape);
  return {decoded->f32().begin(), decoded->f32().end()};
}

TEST(Int8CodecTest, CostsOneByteAndASixteenthAnElement) {
  EXPECT_EQ(int8().frame_bytes({4, 256, 256}, DType::kF32), 64u + 262144u + 4u * 4096u);
  EXPECT_EQ(int8().frame_bytes({65}, DType::kF32), 64u + 65u + 8u);
}

TEST(Int8CodecTest, KeepsASingleElement) {
  EXPECT_THAT(round_trip(tensor_of({1}, {-0.3f})), ElementsAre(::testing::FloatEq(-0.3f)));
  EXPECT_THAT(round_trip(tensor_of({}, {5.0f})), ElementsAre(5.0f));
}

TEST(Int8CodecTest, DistortionOfNormalValuesIsBounded) {
  const HostTensor tensor = normal_tensor({64, 1024}, 42);
  Distortion distortion;
  distortion.add(tensor.f32(), round_trip(tensor));
  // absmax of 64 normals is about 2.4: step 2.4/127, rms error = step / sqrt(12), so about 45 dB.
  EXPECT_GT(distortion.snr_db(), 43.0) << distortion.text();
  EXPECT_LT(distortion.snr_db(), 47.0) << distortion.text();
  EXPECT_LT(distortion.max_error(), 0.5001 * 6.0 / 127) << distortion.text();
  // Five standard errors of a mean of uniform rounding errors.
  EXPECT_LT(std::abs(distortion.bias()), 5 * distortion.rms_error() / std::sqrt(65536.0)) << distortion.text();
  EXPECT_EQ(distortion.sign_flips(), 0u);
}

TEST(Int8CodecTest, OneOutlierCostsItsOwnTileOnly) {
  std::vector<float> values(128, 1.0f);
  values[5] = 1e6f;
  const std::vector<float> decoded = round_trip(tensor_of({128}, values));
  EXPECT_EQ(decoded[6], 0.0f);
  EXPECT_FLOAT_EQ(decoded[5], 1e6f);
  for (std::size_t i = 64; i < 128; ++i) EXPECT_FLOAT_EQ(decoded[i], 1.0f) << i;
}

TEST(Int8CodecTest, ExtremesStayFinite) {
  for (const float value : round_trip(tensor_of({4}, {FLT_MAX, -FLT_MAX, FLT_TRUE_MIN, 0.0f})))
    EXPECT_TRUE(std::isfinite(value));
  EXPECT_THAT(round_trip(tensor_of({2}, {FLT_TRUE_MIN, -FLT_MIN})), ElementsAre(0.0f, 0.0f));
}

TEST(Int8CodecTest, NamesWhereANonFiniteValueLies) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(200, 1.0f);
    values[130] = bad;
    const HostTensor tensor = tensor_of({2, 100}, values);
    const Result<Bytes> frame = int8().encode(tensor.view(), TensorRole::kGradient);
    ASSERT_FALSE(frame.ok());
    EXPECT_EQ(frame.code(), ErrorCode::kNonFinite);
    EXPECT_THAT(frame.error().message, HasSubstr("elements 128 to 191 of (2, 100)"));
  }
}

// The payload of {10} starts with its one scale at 64 and its codes at 68.
ErrorCode code_with(std::size_t at, const void* bytes, std::size_t size) {
  const HostTensor tensor = normal_tensor({10}, 3);
  const Result<Bytes> frame = int8().encode(tensor.view(), TensorRole::kActivation);
  std::vector<std::uint8_t> changed = bytes_in(*frame);
  std::memcpy(&changed[at], bytes, size);
  const Result<HostTensor> decoded = decode_tensor(resealed(changed), DType::kF32, {10});
  return decoded.ok() ? ErrorCode::kInterrupted : decoded.code();
}
ErrorCode code_with_scale(float scale) { return code_with(64, &scale, sizeof scale); }

TEST(Int8CodecTest, RefusesScalesThatNoEncoderWrites) {
  EXPECT_EQ(code_with_scale(std::numeric_limits<float>::quiet_NaN()), ErrorCode::kNonFinite);
  EXPECT_EQ(code_with_scale(-std::numeric_limits<float>::infinity()), ErrorCode::kNonFinite);
  EXPECT_EQ(code_with_scale(-1.0f), ErrorCode::kMalformed);
  EXPECT_EQ(code_with_scale(-0.0f), ErrorCode::kMalformed);
  EXPECT_EQ(code_with_scale(FLT_MAX), ErrorCode::kMalformed);
  EXPECT_EQ(code_with_scale(FLT_TRUE_MIN), ErrorCode::kMalformed);
  EXPECT_EQ(code_with_scale(1.0f), ErrorCode::kInterrupted);  // fits: decoded
}

TEST(Int8CodecTest, RefusesTheCodeMinus128) {
  for (std::size_t at = 68; at < 78; ++at) {
    EXPECT_EQ(code_with(at, "\x80", 1), ErrorCode::kMalformed) << at;
    EXPECT_EQ(code_with(at, "\x81", 1), ErrorCode::kInterrupted) << at;
  }
}

}  // namespace
}  // namespace shoal
