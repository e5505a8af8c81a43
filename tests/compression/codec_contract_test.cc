// What every codec promises, run on each of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "compression/distortion.h"
#include "tests/compression/allocation_probe.h"
#include "tests/compression/tensors.h"

namespace shoal {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class CodecContractTest : public ::testing::TestWithParam<CodecId> {
 protected:
  const Codec& codec() const { return codec_for(GetParam()); }
  Bytes encoded(const HostTensor& tensor, TensorRole role = TensorRole::kActivation) const {
    Result<Bytes> frame = encode(tensor, role);
    return std::move(frame).value();
  }
  // A codec of differences with a base that is near nothing.
  Result<Bytes> encode(const HostTensor& tensor, TensorRole role, std::uint64_t seed = 0) const {
    const HostTensor base = base_of(tensor.shape);
    const BaseView view{base.view(), kBaseHash};
    return codec().encode(tensor.view(), role, is_delta(GetParam()) ? &view : nullptr, seed);
  }
  Result<HostTensor> decode(ByteView frame, DType dtype, const Shape& shape) const {
    const HostTensor base = base_of(shape);
    const BaseView view{base.view(), kBaseHash};
    return decode_tensor(frame, dtype, shape, is_delta(GetParam()) ? &view : nullptr);
  }
  static constexpr std::uint64_t kBaseHash = 0x0123456789abcdef;

 private:
  HostTensor base_of(const Shape& shape) const {
    return is_delta(GetParam()) ? normal_tensor(shape, 99) : HostTensor();
  }
};

std::string test_name_of(CodecId id) {
  std::string name(codec_for(id).name());
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Codecs, CodecContractTest, ::testing::ValuesIn(kCodecs),
                         [](const auto& info) { return test_name_of(info.param); });

TEST_P(CodecContractTest, IsFoundById) { EXPECT_EQ(codec().id(), GetParam()); }

TEST_P(CodecContractTest, FrameSizeIsKnownBeforeEncoding) {
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{63}, Shape{64}, Shape{65}, Shape{2, 3, 5}, Shape{1, 1, 1, 1, 1, 1, 1, 129}}) {
    const HostTensor tensor = normal_tensor(shape, 4);
    const Bytes frame = encoded(tensor);
    EXPECT_EQ(frame.size(), codec().frame_bytes(shape, DType::kF32)) << text_of(shape);
  }
}

TEST_P(CodecContractTest, HeaderTellsWhatWasEncoded) {
  const Bytes frame = encoded(normal_tensor({4, 7, 9}, 1), TensorRole::kGradient);
  const Result<FrameHeader> header = parse_frame_header(frame);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->codec, GetParam());
  EXPECT_EQ(header->role, TensorRole::kGradient);
  EXPECT_EQ(header->dtype, DType::kF32);
  EXPECT_EQ(header->shape, (Shape{4, 7, 9}));
  EXPECT_EQ(header->payload_bytes, frame.size() - 64);
  EXPECT_EQ(header->checksum, crc32c(frame.view().subspan(64)));
  EXPECT_EQ(header->base_hash, is_delta(GetParam()) ? std::optional(kBaseHash) : std::nullopt);
}

TEST_P(CodecContractTest, EncodingTwiceGivesTheSameBytes) {
  const HostTensor tensor = normal_tensor({3, 100}, 2);
  EXPECT_EQ(bytes_in(encoded(tensor)), bytes_in(encoded(tensor)));
}

TEST_P(CodecContractTest, DecodingAndEncodingAgainChangesNothing) {
  if (GetParam() == CodecId::kInt4Hadamard) GTEST_SKIP() << "it rounds by chance";
  if (is_delta(GetParam())) GTEST_SKIP() << "adding the base rounds";
  const HostTensor tensor = normal_tensor({5, 77}, 3);
  const Bytes frame = encoded(tensor);
  const Result<HostTensor> decoded = decode(frame, DType::kF32, tensor.shape);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(bytes_in(encoded(*decoded)), bytes_in(frame));
}

TEST_P(CodecContractTest, TheSeedCountsOnlyWhereChanceRounds) {
  const HostTensor tensor = normal_tensor({3, 100}, 2);
  const auto seeded = [&](std::uint64_t seed) { return bytes_in(*encode(tensor, TensorRole::kActivation, seed)); };
  EXPECT_EQ(seeded(7), seeded(7));
  EXPECT_EQ(seeded(7) == seeded(8), GetParam() != CodecId::kInt4Hadamard);
  const Result<HostTensor> decoded = decode(seeded(8), DType::kF32, tensor.shape);  // of what the frame says
  ASSERT_TRUE(decoded.ok());
  Distortion distortion;
  distortion.add(tensor.f32(), decoded->f32());
  EXPECT_GT(distortion.snr_db(), 5.0) << distortion.text();
}

TEST_P(CodecContractTest, SmallAndLargeAndSignedZeroComeOutFinite) {
  const float tiny = std::numeric_limits<float>::denorm_min(), most = std::numeric_limits<float>::max();
  for (const std::vector<float>& values : {std::vector<float>{-0.0f},
                                           {tiny, -tiny},
                                           {most, -most, tiny, -0.0f},
                                           std::vector<float>(33, most),
                                           {1e-38f, -1e38f, 1.0f}}) {
    const HostTensor tensor = tensor_of({std::ssize(values)}, values);
    const Result<HostTensor> decoded = decode(encoded(tensor), DType::kF32, tensor.shape);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    for (const float value : decoded->f32()) EXPECT_TRUE(std::isfinite(value));
  }
}

// At the ends of tiles and pieces, and in a tail.
TEST_P(CodecContractTest, ALossyCodecRefusesWhatIsNotFiniteAndSaysWhere) {
  if (GetParam() == CodecId::kRaw) GTEST_SKIP() << "raw carries it unchanged";
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t at : {0u, 31u, 32u, 63u, 64u, 8191u, 8192u, 8230u, 8232u}) {
      std::vector<float> values(8233, 1.0f);
      values[at] = bad;
      const HostTensor tensor = tensor_of({8233}, values);
      const Result<Bytes> frame = encode(tensor, TensorRole::kGradient);
      ASSERT_EQ(frame.code(), ErrorCode::kNonFinite) << at;
      EXPECT_THAT(frame.error().message, HasSubstr("codec " + std::string(codec().name()) + ": ")) << at;
      EXPECT_THAT(frame.error().message, HasSubstr("of (8233)")) << at;
    }
  }
}

TEST_P(CodecContractTest, PiecesMakeNoDifference) {
  for (const std::int64_t count : {8191, 8192, 8193, 3 * 8192 + 7}) {
    const HostTensor tensor = normal_tensor({count}, 12);
    const Bytes frame = encoded(tensor);
    EXPECT_EQ(crc32c(frame.view().subspan(64)), parse_frame_header(frame)->checksum) << count;
    const Result<HostTensor> decoded = decode(frame, DType::kF32, tensor.shape);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    Distortion distortion;
    distortion.add(tensor.f32(), decoded->f32());
    EXPECT_GT(distortion.snr_db(), 5.0) << count << ": " << distortion.text();
  }
}

TEST_P(CodecContractTest, GarbageEndsInAnError) {
  Rng rng(21);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint8_t> garbage(rng.below(400));
    for (std::uint8_t& byte : garbage) byte = static_cast<std::uint8_t>(rng.next());
    AllocationProbe probe;
    ASSERT_FALSE(decode_tensor(garbage, DType::kF32, {1 << 20}).ok());
    ASSERT_LT(probe.largest(), 1024u);
    Buffer out(40);
    ASSERT_FALSE(codec().decode(garbage, nullptr, out.view()).ok());
  }
}

TEST_P(CodecContractTest, EncodesOnlyFp32UnlessItIsRaw) {
  if (GetParam() == CodecId::kRaw) GTEST_SKIP() << "raw carries every type";
  const HostTensor tokens = bytes_tensor(DType::kU16, {8}, 1);
  EXPECT_EQ(encode(tokens, TensorRole::kTokens).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(codec().frame_bytes({8}, DType::kU16), 0u);
}

TEST_P(CodecContractTest, DecodesFromAnyAlignment) {
  const HostTensor tensor = normal_tensor({130}, 8);
  const Bytes frame = encoded(tensor);
  const Result<HostTensor> expected = decode(frame, DType::kF32, tensor.shape);
  ASSERT_TRUE(expected.ok());
  for (std::size_t shift = 1; shift < 8; ++shift) {
    Buffer moved(frame.size() + shift);
    std::memcpy(moved.data() + shift, frame.data(), frame.size());
    const Result<HostTensor> decoded = decode(moved.view().subspan(shift), DType::kF32, tensor.shape);
    ASSERT_TRUE(decoded.ok()) << shift;
    EXPECT_EQ(bytes_in(decoded->bytes), bytes_in(expected->bytes)) << shift;
  }
}

TEST_P(CodecContractTest, RefusesATensorOfAnotherTypeOrShapeThanExpected) {
  const Bytes frame = encoded(normal_tensor({4, 6}, 1));
  EXPECT_EQ(decode(frame, DType::kF32, {6, 4}).code(), ErrorCode::kMalformed);
  EXPECT_EQ(decode(frame, DType::kF32, {24}).code(), ErrorCode::kMalformed);
  EXPECT_EQ(decode(frame, DType::kI32, {4, 6}).code(), ErrorCode::kMalformed);
  EXPECT_TRUE(decode(frame, DType::kF32, {4, 6}).ok());
}

TEST_P(CodecContractTest, WritesNothingWhenTheOutputHasAnotherSize) {
  const Bytes frame = encoded(normal_tensor({10}, 1));
  Buffer out(44);
  EXPECT_EQ(codec().decode(frame, nullptr, out.view()).code(), ErrorCode::kMalformed);
  EXPECT_EQ(bytes_in(out.view()), std::vector<std::uint8_t>(44, 0));
}

TEST_P(CodecContractTest, RefusesTheFrameOfAnotherCodec) {
  const CodecId other = GetParam() == CodecId::kRaw ? CodecId::kInt8 : CodecId::kRaw;
  const HostTensor tensor = normal_tensor({10}, 1);
  const Result<Bytes> frame = codec_for(other).encode(tensor.view(), TensorRole::kActivation);
  ASSERT_TRUE(frame.ok());
  Buffer out(40);
  EXPECT_EQ(codec().decode(*frame, nullptr, out.view()).code(), ErrorCode::kMalformed);
}

TEST_P(CodecContractTest, RefusesTensorsBeyondTheLimits) {
  const std::vector<std::uint8_t> none;
  const auto code_of = [&](Shape shape) {
    return codec().encode(TensorView{DType::kF32, std::move(shape), none}, TensorRole::kActivation).code();
  };
  EXPECT_EQ(code_of({(1ll << 29) + 1}), ErrorCode::kTooLarge);
  EXPECT_EQ(code_of({1ll << 40, 1ll << 40}), ErrorCode::kTooLarge);
  EXPECT_EQ(code_of({1, 1, 1, 1, 1, 1, 1, 1, 1}), ErrorCode::kTooLarge);
  EXPECT_EQ(code_of({4, 0}), ErrorCode::kMalformed);
  EXPECT_EQ(code_of({-4}), ErrorCode::kMalformed);
  EXPECT_EQ(codec().frame_bytes({(1ll << 29) + 1}, DType::kF32), 0u);
}

TEST_P(CodecContractTest, TruncationAtEveryLengthIsRefused) {
  const HostTensor tensor = normal_tensor({3, 50}, 6);
  const Bytes frame = encoded(tensor);
  for (std::size_t size = 0; size < frame.size(); ++size) {
    const Result<HostTensor> decoded = decode(frame.view().first(size), DType::kF32, tensor.shape);
    ASSERT_FALSE(decoded.ok()) << size;
    ASSERT_EQ(decoded.code(), ErrorCode::kMalformed) << size << " " << decoded.error().message;
  }
  std::vector<std::uint8_t> longer = bytes_in(frame);
  longer.push_back(0);
  EXPECT_EQ(decode(longer, DType::kF32, tensor.shape).code(), ErrorCode::kMalformed);
}

TEST_P(CodecContractTest, EveryFlippedBitIsNoticed) {
  const HostTensor tensor = normal_tensor({70}, 7);
  const std::vector<std::uint8_t> frame = bytes_in(encoded(tensor));
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    std::vector<std::uint8_t> changed = frame;
    changed[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    ASSERT_FALSE(decode(changed, DType::kF32, tensor.shape).ok()) << "bit " << bit;
  }
}

// A sender that means harm fits its checksums: behind them the rules hold alone.
TEST_P(CodecContractTest, SeededMutationsBehindFittingChecksumsEndInATensorOrANamedError) {
  const HostTensor tensor = normal_tensor({2, 70}, 9);
  const std::vector<std::uint8_t> frame = bytes_in(encoded(tensor));
  Rng rng(1234);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::uint8_t> changed = frame;
    for (std::uint64_t i = 0; i <= rng.below(4); ++i) changed[rng.below(64)] = static_cast<std::uint8_t>(rng.next());
    if (rng.chance(0.3)) changed[64 + rng.below(changed.size() - 64)] = static_cast<std::uint8_t>(rng.next());
    if (rng.chance(0.2)) changed.resize(64 + rng.below(changed.size()));
    if (changed[10] + 256u * changed[11] <= changed.size() && changed.size() >= 64) changed = resealed(changed);
    const Result<HostTensor> decoded = decode(changed, DType::kF32, tensor.shape);
    if (decoded.ok()) {
      ++accepted;
      ASSERT_EQ(decoded->bytes.size(), tensor.bytes.size());
      if (GetParam() != CodecId::kRaw) {
        for (const float value : decoded->f32()) ASSERT_TRUE(std::isfinite(value)) << "round " << round;
      }
      continue;
    }
    ASSERT_THAT(decoded.code(), AnyOf(ErrorCode::kMalformed, ErrorCode::kVersion, ErrorCode::kTooLarge,
                                      ErrorCode::kCorrupt, ErrorCode::kNonFinite, ErrorCode::kGone))
        << decoded.error().message;
  }
  // Harmless changes (role, payload values) do get through: otherwise this loop would only test the checksums.
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 19000);
}

TEST_P(CodecContractTest, HostileHeadersReserveNoMemory) {
  const std::vector<std::uint8_t> frame = bytes_in(encoded(normal_tensor({2, 70}, 9)));
  const auto largest_when_refused = [&](const std::vector<std::uint8_t>& hostile, const Shape& shape) {
    AllocationProbe probe;
    EXPECT_FALSE(parse_frame_header(hostile).ok());
    EXPECT_FALSE(decode_tensor(hostile, DType::kF32, shape).ok());
    return probe.largest();
  };
  // The receiver even expects the large tensor that the header promises and the payload does not have.
  for (const std::int64_t rows : {1ll << 22, 1ll << 40, 1ll << 62, -1ll}) {
    std::vector<std::uint8_t> hostile = frame;
    std::memcpy(&hostile[40], &rows, 8);
    EXPECT_LT(largest_when_refused(resealed(hostile), {rows, 70}), 1024u) << rows;
  }
  std::vector<std::uint8_t> promising = frame;
  std::memset(&promising[16], 0x7f, 8);
  EXPECT_LT(largest_when_refused(resealed(promising), {2, 70}), 1024u);
  // The probe does see what an honest frame costs.
  const HostTensor large = normal_tensor({1000, 70}, 9);
  const Bytes honest = encoded(large);
  AllocationProbe probe;
  EXPECT_TRUE(decode(honest, DType::kF32, large.shape).ok());
  EXPECT_GE(probe.largest(), large.bytes.size());
}

TEST(CodecNamesTest, EveryCodecIsFoundByItsName) {
  for (const CodecId id : kCodecs) EXPECT_EQ(codec_named(codec_for(id).name()), id);
  EXPECT_EQ(codec_named("int5"), std::nullopt);
}

TEST(CodecNamesTest, WhatKeepsWholeNumbersIsToldRight) {
  std::vector<float> values(130);
  Rng rng(3);
  for (float& value : values) value = static_cast<float>(rng.below(129)) - 64;
  for (std::size_t i = 0; i < values.size(); i += 64) values[i] = 127;
  const HostTensor tensor = tensor_of({130}, values);
  const HostTensor other = normal_tensor({130}, 4);
  const BaseView base{other.view(), 1};
  for (const CodecId id : kCodecs) {
    const Result<Bytes> frame = codec_for(id).encode(tensor.view(), TensorRole::kActivation, &base);
    const Result<HostTensor> decoded = decode_tensor(*frame, DType::kF32, tensor.shape, &base);
    EXPECT_EQ(std::ranges::equal(decoded->f32(), values), keeps_whole_numbers(id)) << codec_for(id).name();
  }
}

TEST(RoundingSeedTest, IsOfMicrobatchEdgeAndRoleAndOfNothingElse) {
  const auto seed = [](std::uint64_t trainer, std::uint64_t serial, std::uint16_t edge, TensorRole role) {
    return rounding_seed({trainer, serial}, StageId(edge), role);
  };
  std::set<std::uint64_t> seeds;
  for (const std::uint64_t trainer : {1ull, 2ull}) {
    for (const std::uint64_t serial : {1ull, 2ull, 258ull}) {
      for (const std::uint16_t edge : {0, 1, 2})
        for (const TensorRole role : {TensorRole::kActivation, TensorRole::kGradient})
          seeds.insert(seed(trainer, serial, edge, role));
    }
  }
  EXPECT_EQ(seeds.size(), 36u);
  EXPECT_EQ(seed(1, 2, 3, TensorRole::kGradient), seed(1, 2, 3, TensorRole::kGradient));
}

TEST(RawCodecTest, CarriesEveryTypeUnchanged) {
  for (const DType dtype : {DType::kF32, DType::kU8, DType::kU16, DType::kI32, DType::kF64, DType::kU32}) {
    const HostTensor tensor = bytes_tensor(dtype, {3, 33}, 5);
    const Result<Bytes> frame = codec_for(CodecId::kRaw).encode(tensor.view(), TensorRole::kTokens);
    ASSERT_TRUE(frame.ok());
    const Result<HostTensor> decoded = decode_tensor(*frame, dtype, tensor.shape);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(bytes_in(decoded->bytes), bytes_in(tensor.bytes));
  }
}

}  // namespace
}  // namespace shoal
