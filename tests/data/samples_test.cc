#include "runtime/data/samples.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "runtime/data/entropy.h"
#include "tests/common/irregular_files.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using testing::HasSubstr;

TokenFile counting_bytes(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  return *TokenFile::from_bytes(Bytes::from_vector(std::move(bytes)), DType::kU8, 256, "test");
}

TEST(TokenFileTest, MapsIdsOfEachWidth) {
  const ScratchFolder folder;
  const std::string path = folder.write("t.bin", std::string("\x01\x00\x02\x01", 4));
  const auto words = TokenFile::open(path, DType::kU16, 1000);
  ASSERT_TRUE(words.ok()) << words.error().message;
  EXPECT_EQ(words->tokens(), 2u);
  EXPECT_EQ(words->tokens_at(1, 1)[1], 1);
  EXPECT_EQ(TokenFile::open(path, DType::kU8, 256)->tokens(), 4u);
  EXPECT_EQ(TokenFile::open(path, DType::kU32, 0x1020002)->tokens(), 1u);
  EXPECT_THAT(TokenFile::open(path, DType::kU32, 70000).error().message,
              HasSubstr("token id 16908289 at byte 0 is not below [model] vocabulary = 70000"));
}

TEST(TokenFileTest, NamesAFileOfTheWrongWidth) {
  const ScratchFolder folder;
  const auto odd = TokenFile::open(folder.write("odd.bin", "abc"), DType::kU16, 65536);
  ASSERT_FALSE(odd.ok());
  EXPECT_THAT(odd.error().message, HasSubstr("has 3 bytes, no multiple of 2"));
  const auto text = TokenFile::open(folder.write("text.bin", "plain text, even"), DType::kU16, 1000);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.code(), ErrorCode::kInput);
  EXPECT_THAT(text.error().message, HasSubstr("token id 27760 at byte 0 is not below [model] vocabulary = 1000"));
  EXPECT_THAT(text.error().message, HasSubstr("width = \"u8\""));
  const auto last = TokenFile::open(folder.write("last.bin", std::string("\x01\x01\x01\x09", 4)), DType::kU16, 2048);
  EXPECT_THAT(last.error().message, HasSubstr("at byte 2"));
}

TEST(TokenFileTest, NamesWhatIsAbsentOrEmpty) {
  const ScratchFolder folder;
  EXPECT_EQ(TokenFile::open(folder / "absent", DType::kU8, 256).code(), ErrorCode::kMissing);
  EXPECT_EQ(TokenFile::open(folder.write("empty", ""), DType::kU8, 256).code(), ErrorCode::kInput);
  EXPECT_EQ(TokenFile::open(folder.path(), DType::kU8, 256).code(), ErrorCode::kInput);
}

// A FIFO that nobody writes would be waited for, a device could be read for ever.
TEST(TokenFileTest, NamesWhatIsNoRegularFileAtOnce) {
  const ScratchFolder folder;
  for (const auto& [path, kind] : irregular_files(folder)) {
    const auto text = TokenFile::open(path, DType::kU8, 256);
    ASSERT_FALSE(text.ok()) << path;
    EXPECT_EQ(text.code(), ErrorCode::kInput);
    EXPECT_THAT(text.error().message, AllOf(HasSubstr(path), HasSubstr(kind), HasSubstr("HINT: [data] path")));
  }
}

TEST(SamplesTest, WindowsAreConsecutiveAndShareTheirEdge) {
  const auto samples = Samples::cut(counting_bytes(2 * 3 * 4 + 1 + 5), 3, 4);
  ASSERT_TRUE(samples.ok());
  EXPECT_EQ(samples->count(), 2u);
  const HostTensor tokens = samples->tokens(SampleId{1});
  EXPECT_EQ(tokens.shape, (Shape{3, 5}));
  for (std::size_t b = 0; b < 3; ++b) {
    for (std::size_t t = 0; t < 5; ++t) EXPECT_EQ(tokens.bytes.data()[b * 5 + t], 12 + b * 4 + t);
  }
}

TEST(SamplesTest, TheLastTokenIsOnlyATarget) {
  EXPECT_EQ(Samples::cut(counting_bytes(24), 3, 4).code(), ErrorCode::kInput);
  EXPECT_EQ(Samples::cut(counting_bytes(25), 3, 4)->count(), 2u);
}

TEST(SamplesTest, IdsOfEachWidthKeepTheirValue) {
  for (const auto& [width, base] : {std::pair(DType::kU16, 256u), {DType::kU32, 65'536u}}) {
    const std::size_t step = size_of(width);
    std::vector<std::uint8_t> bytes(9 * step);  // base, base + 1, ...
    for (std::size_t i = 0; i < 9; ++i) bytes[i * step + step / 2] = 1, bytes[i * step] = static_cast<std::uint8_t>(i);
    const auto samples = Samples::cut(*TokenFile::from_bytes(Bytes::from_vector(bytes), width, base + 9, "test"), 2, 2);
    const HostTensor tokens = samples->tokens(SampleId{1});
    ASSERT_EQ(tokens.dtype, width);
    std::vector<std::uint32_t> ids;
    for (std::size_t i = 0; i < 6; ++i) ids.push_back(id_at(tokens.bytes, width, i) - base);
    EXPECT_EQ(ids, (std::vector<std::uint32_t>{4, 5, 6, 6, 7, 8}));
  }
}

TEST(SamplesTest, TheLastTenthIsValidation) {
  const auto many = Samples::cut(counting_bytes(101), 1, 1);
  EXPECT_EQ(many->training(), 90u);
  EXPECT_EQ(many->validation(), 10u);
  const auto few = Samples::cut(counting_bytes(4), 1, 1);
  EXPECT_EQ(few->training(), 2u);
  EXPECT_EQ(few->validation(), 1u);
}

TEST(SampleOrderTest, EveryEpochIsAPermutationOfItsOwn) {
  SampleOrder order(50, 3);
  std::vector<std::vector<std::uint64_t>> epochs(3);
  for (std::uint64_t i = 0; i < 150; ++i) {
    const auto item = order.at(i);
    EXPECT_EQ(item.epoch, i / 50);
    epochs[i / 50].push_back(item.sample.value);
  }
  for (const auto& epoch : epochs) {
    EXPECT_EQ(std::set<std::uint64_t>(epoch.begin(), epoch.end()).size(), 50u);
    EXPECT_LT(*std::max_element(epoch.begin(), epoch.end()), 50u);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(SampleOrderTest, DependsOnSeedAndIndexAlone) {
  SampleOrder forward(40, 9), jumping(40, 9), other(40, 10);
  std::vector<std::uint64_t> a, b, c;
  for (std::uint64_t i = 0; i < 120; ++i) a.push_back(forward.at(i).sample.value);
  for (std::uint64_t i = 120; i-- > 0;) b.push_back(jumping.at(i).sample.value);
  for (std::uint64_t i = 0; i < 120; ++i) c.push_back(other.at(i).sample.value);
  std::reverse(b.begin(), b.end());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

ByteView view_of(const std::string& text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }
TextEntropy of_bytes(const std::string& text) { return text_entropy({view_of(text)}, DType::kU8); }

TEST(EntropyTest, KnownTexts) {
  EXPECT_EQ(of_bytes("").unigram, 0);
  EXPECT_NEAR(of_bytes("aaaa").unigram, 0, 1e-12);
  std::string turns;
  for (int i = 0; i < 1000; ++i) turns += "ab";
  EXPECT_NEAR(of_bytes(turns).unigram, std::log(2.0), 1e-12);
  EXPECT_NEAR(of_bytes(turns).bigram, 0, 1e-12);  // the next one is certain
  // "aab": after a come a and b once each, b is never followed: one bit over two of two pairs.
  EXPECT_NEAR(of_bytes("aab").bigram, std::log(2.0), 1e-12);
}

TEST(EntropyTest, OfWiderIdsItIsTheIdsThatAreCounted) {
  for (const DType width : {DType::kU16, DType::kU32}) {
    std::string turns;  // two ids that differ in their second byte; their bytes tell another story
    const std::string rest(size_of(width) - 2, '\0');
    for (int i = 0; i < 1000; ++i) turns += "a\x01" + rest + "a\x02" + rest;
    EXPECT_NEAR(text_entropy({view_of(turns)}, width).unigram, std::log(2.0), 1e-12);
    EXPECT_NEAR(text_entropy({view_of(turns)}, width).bigram, 0, 1e-12);
    EXPECT_GT(of_bytes(turns).unigram, 1);
    EXPECT_EQ(text_entropy({}, width).unigram, 0);
  }
}

TEST(EntropyTest, TheBigramNeverKnowsLess) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>('a' + mix64(static_cast<std::uint64_t>(i)) % 7);
  const TextEntropy entropy = of_bytes(text);
  EXPECT_NEAR(entropy.unigram, std::log(7.0), 0.01);
  EXPECT_LE(entropy.bigram, entropy.unigram);
}

}  // namespace
}  // namespace shoal
