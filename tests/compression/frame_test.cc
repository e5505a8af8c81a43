#include "compression/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <sstream>

#include "tests/compression/tensors.h"

namespace shoal {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// The example that the document of the wire format works through.
HostTensor example_tensor() { return tensor_of({2, 3}, {1.0f, -2.0f, 0.5f, 127.0f, -127.0f, 0.0f}); }

// The hexadecimal bytes of the document's block that follows the line "<!-- tensor-frame-example CODEC -->".
std::vector<std::uint8_t> documented_example(std::string_view codec) {
  std::ifstream file(std::string(SHOAL_SOURCE_DIR) + "/docs/WIRE.md");
  std::string line;
  while (std::getline(file, line) && line != "<!-- tensor-frame-example " + std::string(codec) + " -->") {
  }
  std::getline(file, line);  // the fence
  std::vector<std::uint8_t> bytes;
  while (std::getline(file, line) && !line.starts_with("```")) {
    std::istringstream words(line.substr(0, line.find('|')));
    std::string offset, word;
    words >> offset;
    while (words >> word) bytes.push_back(static_cast<std::uint8_t>(std::stoul(word, nullptr, 16)));
  }
  return bytes;
}

TEST(FrameTest, TheDocumentedExampleIsWhatTheCodecWrites) {
  const Result<Bytes> frame = codec_for(CodecId::kInt8).encode(example_tensor().view(), TensorRole::kGradient);
  ASSERT_TRUE(frame.ok());
  EXPECT_THAT(bytes_in(*frame), ElementsAreArray(documented_example("int8")));
}

TEST(FrameTest, TheDocumentedExampleDecodes) {
  const Result<HostTensor> tensor = decode_tensor(documented_example("int8"), DType::kF32, {2, 3});
  ASSERT_TRUE(tensor.ok()) << tensor.error().message;
  EXPECT_THAT(tensor->f32(), ::testing::ElementsAre(1.0f, -2.0f, 0.0f, 127.0f, -127.0f, 0.0f));
}

TEST(FrameTest, TheDocumentedExampleOfFourBitsIsWhatTheCodecWrites) {
  const HostTensor tensor = tensor_of({2, 3}, {1.0f, -2.0f, 0.5f, 7.0f, -7.0f, 0.0f});
  const Result<Bytes> frame = codec_for(CodecId::kInt4).encode(tensor.view(), TensorRole::kGradient);
  ASSERT_TRUE(frame.ok());
  EXPECT_THAT(bytes_in(*frame), ElementsAreArray(documented_example("int4")));
}

TEST(FrameTest, GoldenBytesOfABf16Frame) {
  const Result<Bytes> frame = codec_for(CodecId::kBf16).encode(example_tensor().view(), TensorRole::kGradient);
  ASSERT_TRUE(frame.ok());
  std::vector<std::uint8_t> expected(76, 0);
  const std::uint8_t head[] = {'S',  'T',  'F',  '1', 2, 1, 1, 0, 2, 0, 64,   0,    0x6c, 0xa9,
                               0xf4, 0xe2, 0x0c, 0,   0, 0, 0, 0, 0, 0, 0xff, 0x94, 0x31, 0x28};
  const std::uint8_t payload[] = {0x80, 0x3f, 0x00, 0xc0, 0x00, 0x3f, 0xfe, 0x42, 0xfe, 0xc2, 0x00, 0x00};
  std::copy(std::begin(head), std::end(head), expected.begin());
  expected[40] = 2;
  expected[48] = 3;
  std::copy(std::begin(payload), std::end(payload), expected.begin() + 64);
  EXPECT_THAT(bytes_in(*frame), ElementsAreArray(expected));
}

TEST(FrameTest, GoldenBytesOfARawFrame) {
  const HostTensor tokens = [] {
    Buffer buffer(4);
    for (std::size_t i = 0; i < 4; ++i) buffer.data()[i] = static_cast<std::uint8_t>(0xa0 + i);
    return make_host_tensor(DType::kU8, {4}, std::move(buffer));
  }();
  const Result<Bytes> frame = codec_for(CodecId::kRaw).encode(tokens.view(), TensorRole::kTokens);
  ASSERT_TRUE(frame.ok());
  std::vector<std::uint8_t> expected(68, 0);
  const std::uint8_t head[] = {'S',  'T',  'F', '1', 0, 1, 2, 1, 1, 0, 64,   0,    0xfa, 0x17,
                               0xf7, 0x07, 4,   0,   0, 0, 0, 0, 0, 0, 0x1d, 0xe7, 0xd6, 0x10};
  std::copy(std::begin(head), std::end(head), expected.begin());
  expected[40] = 4;
  for (std::size_t i = 0; i < 4; ++i) expected[64 + i] = static_cast<std::uint8_t>(0xa0 + i);
  EXPECT_THAT(bytes_in(*frame), ElementsAreArray(expected));
}

struct GoldenDelta {
  CodecId codec;
  std::vector<float> rows[2];  // the second one as its difference to a base of 100
  std::vector<std::uint8_t> payload;
};

// By the rules of docs/WIRE.md, by hand: the first row is as near to its base of 0 as to nothing and goes as it is.
TEST(FrameTest, GoldenPayloadsOfDifferences) {
  const GoldenDelta examples[] = {{CodecId::kAq4,
                                   {{1.0f, -2.0f, 0.5f}, {7.0f, -7.0f, 0.0f}},
                                   {0x02, 0x80, 0x3f, 0x01, 0x0e, 0x00, 0x07, 0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
                                  {CodecId::kAq2,
                                   {{3.0f, 1.0f, -1.0f, -3.0f}, {3.0f, 1.0f, -1.0f, -3.0f}},
                                   {0x02, 0x80, 0x3f, 0x55, 0x00, 0xaa, 0xff, 0x55, 0x00, 0xaa, 0xff}}};
  for (const GoldenDelta& example : examples) {
    std::vector<float> values = example.rows[0], known(example.rows[0].size(), 0.0f);
    for (const float difference : example.rows[1]) {
      values.push_back(100.0f + difference);
      known.push_back(100.0f);
    }
    const Shape shape{2, static_cast<std::int64_t>(example.rows[0].size())};
    const HostTensor base = tensor_of(shape, known);
    const BaseView view{base.view(), 77};
    const Codec& codec = codec_for(example.codec);
    const Result<Bytes> frame = codec.encode(tensor_of(shape, values).view(), TensorRole::kActivation, &view);
    ASSERT_TRUE(frame.ok()) << codec.name();
    const Result<FrameView> read = read_frame(*frame);
    ASSERT_TRUE(read.ok()) << codec.name();
    EXPECT_THAT(std::vector(read->payload.begin(), read->payload.end()), ElementsAreArray(example.payload))
        << codec.name();
    EXPECT_EQ(read->header.base_hash, 77u);
  }
}

TEST(FrameTest, HeaderIsOneCacheLineForUpToThreeExtents) {
  for (std::size_t dims = 0; dims <= 3; ++dims) EXPECT_EQ(frame_header_bytes(dims), 64u);
  for (std::size_t dims = 4; dims <= 8; ++dims) EXPECT_EQ(frame_header_bytes(dims), 128u);
}

TEST(FrameTest, TensorBytesAreCheckedWithoutOverflow) {
  EXPECT_EQ(*tensor_bytes({}, DType::kF64), 8u);
  EXPECT_EQ(*tensor_bytes({1ll << 29}, DType::kF32), kTensorBytesMax);
  EXPECT_EQ(*tensor_bytes({1ll << 31}, DType::kU8), kTensorBytesMax);
  EXPECT_EQ(tensor_bytes({(1ll << 31) + 1}, DType::kU8).code(), ErrorCode::kTooLarge);
  EXPECT_EQ(tensor_bytes({1ll << 32, 1ll << 32}, DType::kU8).code(), ErrorCode::kTooLarge);
  EXPECT_EQ(tensor_bytes({INT64_MAX, INT64_MAX}, DType::kF64).code(), ErrorCode::kTooLarge);
  EXPECT_EQ(tensor_bytes({2, 0}, DType::kF32).code(), ErrorCode::kMalformed);
  EXPECT_EQ(tensor_bytes({INT64_MIN}, DType::kF32).code(), ErrorCode::kMalformed);
}

TEST(FrameTest, ABaseHashTravelsInTheHeader) {
  std::vector<std::uint8_t> frame(64 + 8, 1);
  seal_frame({CodecId::kRaw, kRawVersion, TensorRole::kActivation, DType::kF32, {2}, 8, 0x1122334455667788ull, 0},
             frame);
  const Result<FrameView> view = read_frame(frame);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->header.base_hash, 0x1122334455667788ull);
  EXPECT_TRUE(check_payload(*view).ok());
  // The codecs of this version have no base: such a frame is not theirs.
  EXPECT_EQ(decode_tensor(frame, DType::kF32, {2}).code(), ErrorCode::kMalformed);
}

struct BrokenField {
  const char* name;
  std::size_t at;
  std::uint8_t value;
  ErrorCode code;
  const char* says;
};

TEST(FrameTest, EveryFieldHasItsNamedError) {
  const Result<Bytes> frame = codec_for(CodecId::kInt8).encode(example_tensor().view(), TensorRole::kGradient);
  for (const BrokenField& broken : std::initializer_list<BrokenField>{
           {"magic", 0, 'X', ErrorCode::kMalformed, "STF1"},
           {"layout", 3, '2', ErrorCode::kMalformed, "STF1"},
           {"codec", 4, 9, ErrorCode::kVersion,
            "codec 9 version 1 is unknown here (known: 0 raw version 1, 1 int8 version 1"},
           {"version", 5, 2, ErrorCode::kVersion, "codec 1 version 2"},
           {"role", 6, 4, ErrorCode::kMalformed, "role"},
           {"element type", 7, 6, ErrorCode::kMalformed, "element type"},
           {"element type of int8", 7, 1, ErrorCode::kMalformed, "74 bytes, but one of codec int8"},
           {"nine extents", 8, 9, ErrorCode::kTooLarge, "9 extents"},
           {"four extents", 8, 4, ErrorCode::kMalformed, "header size"},
           {"a third extent of zero", 8, 3, ErrorCode::kMalformed, "below 1"},
           {"flags", 9, 2, ErrorCode::kMalformed, "flags"},
           {"payload size", 16, 11, ErrorCode::kMalformed, "names 11 payload bytes and has 10"},
           {"reserved", 28, 1, ErrorCode::kMalformed, "reserved"},
           {"hash without flag", 32, 1, ErrorCode::kMalformed, "base hash"},
           {"extent zero", 40, 0, ErrorCode::kMalformed, "below 1"},
           {"huge extent", 46, 1, ErrorCode::kTooLarge, "beyond"},
           {"negative extent", 47, 0x80, ErrorCode::kMalformed, "below 1"},
           {"padding", 60, 1, ErrorCode::kMalformed, "padding"}}) {
    std::vector<std::uint8_t> changed = bytes_in(*frame);
    changed[broken.at] = broken.value;
    const Result<FrameHeader> header = parse_frame_header(resealed(changed));
    ASSERT_FALSE(header.ok()) << broken.name;
    EXPECT_EQ(header.code(), broken.code) << broken.name << ": " << header.error().message;
    EXPECT_THAT(header.error().message, HasSubstr(broken.says)) << broken.name;
  }
}

TEST(FrameTest, ADamagedHeaderAndADamagedPayloadAreToldApart) {
  const Result<Bytes> frame = codec_for(CodecId::kInt8).encode(example_tensor().view(), TensorRole::kGradient);
  std::vector<std::uint8_t> changed = bytes_in(*frame);
  changed[6] ^= 1;
  EXPECT_THAT(decode_tensor(changed, DType::kF32, {2, 3}).error().message, HasSubstr("header's checksum"));
  changed = bytes_in(*frame);
  changed.back() ^= 1;
  EXPECT_TRUE(parse_frame_header(changed).ok());
  const Result<HostTensor> decoded = decode_tensor(changed, DType::kF32, {2, 3});
  EXPECT_EQ(decoded.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(decoded.error().message, HasSubstr("payload's checksum"));
}

}  // namespace
}  // namespace shoal
