#include "runtime/data/text_set.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "common/byte_codec.h"
#include "runtime/data/samples.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using testing::HasSubstr;

std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// The ids first, first + 1, ... of 16 bits.
std::string counting_words(std::uint16_t first, std::size_t count) {
  std::vector<std::uint8_t> bytes(2 * count);
  for (std::size_t i = 0; i < count; ++i) put_le(bytes.data() + 2 * i, static_cast<std::uint16_t>(first + i));
  return text_of(bytes);
}

TokenSidecar sidecar_of(std::uint64_t tokens, std::uint8_t tokenizer = 7) {
  TokenSidecar sidecar{.width = DType::kU16, .tokens = tokens, .documents = 1, .vocabulary = 1000};
  sidecar.tokenizer.bytes[0] = tokenizer;
  sidecar.source = {"a.txt"};
  return sidecar;
}

class TextSetTest : public testing::Test {
 protected:
  std::string words(const std::string& name, std::uint16_t first, std::size_t count) {
    return folder_.write(name, counting_words(first, count));
  }
  // B = 1, T = 4: a sample is four tokens.
  TextFiles files(std::vector<std::string> paths) const {
    return {.paths = std::move(paths), .width = DType::kU16, .vocabulary = 65536, .sequences = 1, .positions = 4};
  }
  static std::uint16_t first_id(const Samples& samples, std::uint64_t sample) {
    return get_le<std::uint16_t>(samples.tokens(SampleId{sample}).bytes, 0);
  }
  static std::string why(const TextFiles& files) {
    const auto samples = Samples::open(files);
    if (samples.ok()) return "it is taken";
    EXPECT_EQ(samples.code(), ErrorCode::kInput);
    return samples.error().message;
  }
  ScratchFolder folder_;
};

TEST_F(TextSetTest, ReadsShardsOfLlmCOfBothWidths) {
  const std::string two = folder_.write("two.bin", text_of(llmc_header({DType::kU16, 5})) + counting_words(300, 5));
  const auto file = TokenFile::open(two, DType::kU16, 1000);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->header(), TokenHeader::kLlmc);
  EXPECT_EQ(file->tokens(), 5u);
  EXPECT_EQ(get_le<std::uint16_t>(file->tokens_at(4, 1), 0), 304);
  const std::string four =
      folder_.write("four.bin", text_of(llmc_header({DType::kU32, 1})) + std::string("\x01\x00\x01\x00", 4));
  EXPECT_EQ(TokenFile::open(four, DType::kU32, 70000)->tokens(), 1u);
  EXPECT_EQ(ScratchFolder::read(two).substr(0, 12), std::string("\x88\xd8\x34\x01\x01\0\0\0\x05\0\0\0", 12));
}

TEST_F(TextSetTest, AShardIsTheSameTextAsItsIdsAlone) {
  const auto alone = Samples::open(files({words("alone.bin", 0, 101)}));
  const auto shard =
      Samples::open(files({folder_.write("s.bin", text_of(llmc_header({DType::kU16, 101})) + counting_words(0, 101))}));
  ASSERT_TRUE(alone.ok() && shard.ok());
  ASSERT_EQ(alone->count(), shard->count());
  for (std::uint64_t i = 0; i < alone->count(); ++i) EXPECT_EQ(first_id(*alone, i), first_id(*shard, i));
}

TEST_F(TextSetTest, RefusesAHeaderThatDoesNotFit) {
  const auto header = [](DType width, std::uint64_t tokens) { return text_of(llmc_header({width, tokens})); };
  EXPECT_THAT(why(files({folder_.write("cut.bin", header(DType::kU16, 6) + counting_words(0, 5))})),
              AllOf(HasSubstr("cut.bin"), HasSubstr("6 tokens of u16"), HasSubstr("it has 1034"), HasSubstr("HINT")));
  EXPECT_THAT(why(files({folder_.write("wide.bin", header(DType::kU32, 1) + "abcd")})),
              AllOf(HasSubstr("its header tells of ids of u32"), HasSubstr("Set [data] width = \"u32\"")));
  std::string other = header(DType::kU16, 5) + counting_words(0, 5);
  other[4] = 2;
  EXPECT_THAT(why(files({folder_.write("other.bin", other)})), HasSubstr("of version 2, known is version 1"));
  TextFiles small = files({folder_.write("id.bin", header(DType::kU16, 5) + counting_words(0, 5))});
  small.vocabulary = 4;
  EXPECT_THAT(why(small), HasSubstr("token id 4 at byte 1032"));
}

TEST_F(TextSetTest, RefusesASidecarThatSaysOtherwise) {
  const std::string path = words("t.bin", 0, 41);
  const auto says = [&](const TokenSidecar& sidecar) { folder_.write("t.bin.json", sidecar_text(sidecar)); };
  says(sidecar_of(41));
  const auto file = TokenFile::open(path, DType::kU16, 1000);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->sidecar()->tokenizer.bytes[0], 7);
  EXPECT_EQ(file->sidecar()->source, (std::vector<std::string>{"a.txt"}));

  says(sidecar_of(40));
  EXPECT_THAT(why(files({path})), AllOf(HasSubstr("t.bin.json: tells of 40 tokens"), HasSubstr("has 41")));
  TokenSidecar wide = sidecar_of(41);
  wide.width = DType::kU32;
  says(wide);
  EXPECT_THAT(why(files({path})), HasSubstr("Set [data] width = \"u32\""));
  TokenSidecar large = sidecar_of(41);
  large.vocabulary = 70'000;
  says(large);
  EXPECT_THAT(why(files({path})), HasSubstr("Set [model] vocabulary = 70000, or more"));
  for (const char* broken : {"", "{", "[]", "{\"schema\":\"shoal.tokens/2\"}", "{\"schema\":\"shoal.tokens/1\"}"}) {
    folder_.write("t.bin.json", broken);
    EXPECT_THAT(why(files({path})), AllOf(HasSubstr("t.bin.json"), HasSubstr("HINT"))) << broken;
  }
}

TEST_F(TextSetTest, RefusesAnotherTokenizerThanTheOneThatMadeTheIds) {
  const std::string tokenizer = folder_.write("tokenizer.json", "{}");
  TokenSidecar sidecar = sidecar_of(41);
  sidecar.tokenizer = blake2b_256(Bytes::copy_of(std::string_view("{}")));
  TextFiles text = files({words("t.bin", 0, 41)});
  folder_.write("t.bin.json", sidecar_text(sidecar));
  text.tokenizer = tokenizer;
  const auto taken = TextSet::open(text);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_EQ(taken->tokenizer, sidecar.tokenizer);

  text.tokenizer_digest = Digest{};
  EXPECT_THAT(why(text), AllOf(HasSubstr("tokenizer.json is not the one"), HasSubstr("[data] tokenizer")));
  text.tokenizer = "";  // a manifest alone
  EXPECT_THAT(why(text), AllOf(HasSubstr("t.bin was made with the tokenizer"), HasSubstr("HINT")));
  text = files({text.paths[0], words("u.bin", 0, 41)});
  folder_.write("u.bin.json", sidecar_text(sidecar_of(41, 8)));
  EXPECT_THAT(why(text), HasSubstr("u.bin was made with the tokenizer 08")) << "two files of two tokenizers";
}

TEST_F(TextSetTest, RefusesAFileWhoseDigestIsAnother) {
  TextFiles text = files({words("a.bin", 0, 41), words("b.bin", 50, 41)});
  text.validation = words("v.bin", 100, 9);
  text.digests = TextSet::open(text)->digests();
  ASSERT_EQ(text.digests.size(), 3u);
  EXPECT_TRUE(TextSet::open(text).ok());
  words("b.bin", 51, 41);
  EXPECT_THAT(why(text), AllOf(HasSubstr("b.bin is not the one that the run was begun with"), HasSubstr("HINT")));
  words("b.bin", 50, 41);
  words("v.bin", 101, 9);
  EXPECT_THAT(why(text), AllOf(HasSubstr("v.bin is not the one"), HasSubstr("[data] validation")));
  text.validation.clear();
  EXPECT_THAT(why(text), HasSubstr("digests names 3 files, and [data] path and validation name 2"));
}

TEST_F(TextSetTest, NumbersSamplesOverAllFilesAndHoldsOutATenthOfEach) {
  const auto samples = Samples::open(files({words("a.bin", 0, 20 * 4 + 1), words("b.bin", 1000, 10 * 4 + 3)}));
  ASSERT_TRUE(samples.ok()) << samples.error().message;
  EXPECT_EQ(samples->training(), 18u + 9u);
  EXPECT_EQ(samples->validation(), 2u + 1u);
  for (std::uint64_t i = 0; i < 18; ++i) EXPECT_EQ(first_id(*samples, i), 4 * i);
  for (std::uint64_t i = 0; i < 9; ++i) EXPECT_EQ(first_id(*samples, 18 + i), 1000 + 4 * i);
  EXPECT_EQ(first_id(*samples, 27), 18 * 4) << "place 1/4 of the first file's";
  EXPECT_EQ(first_id(*samples, 28), 1000 + 9 * 4) << "place 1/2 of the second file's";
  EXPECT_EQ(first_id(*samples, 29), 19 * 4);
}

TEST_F(TextSetTest, TwoSmallFilesLeaveOneSampleForValidation) {
  const auto samples = Samples::open(files({words("a.bin", 0, 5), words("b.bin", 1000, 13)}));
  ASSERT_TRUE(samples.ok()) << samples.error().message;
  EXPECT_EQ(samples->training(), 3u);
  EXPECT_EQ(first_id(*samples, 3), 1008) << "the last one of the largest file";
  EXPECT_THAT(why(files({words("c.bin", 0, 4), words("d.bin", 0, 50)})), HasSubstr("c.bin has 4 tokens"));
}

TEST_F(TextSetTest, AValidationFileIsTheValidationAlone) {
  TextFiles text = files({words("a.bin", 0, 41)});
  text.validation = words("v.bin", 500, 13);
  const auto samples = Samples::open(text);
  ASSERT_TRUE(samples.ok()) << samples.error().message;
  EXPECT_EQ(samples->training(), 10u);
  EXPECT_EQ(samples->validation(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(first_id(*samples, 10 + i), 500 + 4 * i);
  text.validation = words("short.bin", 500, 4);
  EXPECT_THAT(why(text), HasSubstr("short.bin has 4 tokens; one microbatch takes 4"));
}

TEST_F(TextSetTest, WithoutWeightsAnEpochHasEverySampleOfEveryFileOnce) {
  const auto samples = Samples::open(files({words("a.bin", 0, 101), words("b.bin", 1000, 61)}));
  ASSERT_TRUE(samples.ok());
  SampleOrder order = samples->order(3);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < samples->training(); ++i) seen.insert(order.at(i).sample.value);
  EXPECT_EQ(seen.size(), samples->training());
}

// A weight decides how often a file's samples come, and within a file each comes as often as the others, to one.
TEST_F(TextSetTest, WithWeightsFilesComeByTheirShareAndSamplesInTurn) {
  TextFiles text = files({words("a.bin", 0, 40 * 4 + 1), words("b.bin", 1000, 10 * 4 + 1)});
  text.weights = {1, 3};
  const auto samples = Samples::open(text);
  ASSERT_TRUE(samples.ok()) << samples.error().message;
  const std::uint64_t epoch = samples->training();  // 36 + 9
  SampleOrder order = samples->order(3);
  std::map<std::uint64_t, int> times;
  for (std::uint64_t i = 0; i < 4 * epoch; ++i) {
    const SampleOrder::Item item = order.at(i);
    ASSERT_LT(item.sample.value, epoch);
    EXPECT_EQ(item.epoch, i / epoch);
    ++times[item.sample.value];
  }
  int of_a = 0, of_b = 0;
  for (const auto& [sample, count] : times) {
    (sample < 36 ? of_a : of_b) += count;
    const int least = sample < 36 ? 1 : 15;  // 44 draws of 36; 136 draws of 9
    EXPECT_TRUE(count == least || count == least + 1) << sample << " came " << count << " times";
  }
  EXPECT_EQ(of_a, 4 * 11);  // 45 / 4 = 11.25, whose remainder is the smaller one
  EXPECT_EQ(of_b, 4 * 34);
}

TEST_F(TextSetTest, AWeightedOrderDependsOnSeedAndIndexAlone) {
  TextFiles text = files({words("a.bin", 0, 161), words("b.bin", 1000, 41)});
  text.weights = {0.2, 0.8};
  const auto samples = Samples::open(text);
  SampleOrder forward = samples->order(9), jumping = samples->order(9), other = samples->order(10);
  std::vector<std::uint64_t> a, b, c;
  for (std::uint64_t i = 0; i < 200; ++i) a.push_back(forward.at(i).sample.value);
  for (std::uint64_t i = 200; i-- > 0;) b.push_back(jumping.at(i).sample.value);
  for (std::uint64_t i = 0; i < 200; ++i) c.push_back(other.at(i).sample.value);
  std::reverse(b.begin(), b.end());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

TEST_F(TextSetTest, RefusesAWeightThatDrawsNothing) {
  TextFiles text = files({words("a.bin", 0, 161), words("b.bin", 1000, 41)});
  text.weights = {1, 1e-6};
  EXPECT_THAT(why(text), AllOf(HasSubstr("gives"), HasSubstr("b.bin none of the 45 samples")));
}

}  // namespace
}  // namespace shoal
