// Our ids and texts beside those of the package `tokenizers` (tests/text/make_golden.py).
#include <gmock/gmock.h>

#include <thread>

#include "common/byte_codec.h"
#include "tests/text/tokenizer_texts.h"

namespace shoal {
namespace {

using nlohmann::json;

const json& expected() {
  static const json golden = json::parse(file_text(kGolden + "expected.json"));
  return golden;
}

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

// As documents() of tests/text/mixed_text.py.
Ids encoded_in_documents(const Tokenizer& tokenizer, std::string_view text, std::size_t size) {
  Ids ids;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line = text.find('\n', std::min(text.size(), at + size - 1));
    const std::size_t end = line == std::string_view::npos ? text.size() : line + 1;
    tokenizer.encode(text.substr(at, end - at), ids);
    at = end;
  }
  return ids;
}

std::string digest_of(const Ids& ids) {
  std::vector<std::uint8_t> bytes;
  for (const std::uint32_t id : ids) append_le(bytes, id);
  std::string hex;
  for (const std::uint8_t byte : blake2b_256(bytes).bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

class GoldenTest : public testing::TestWithParam<std::string> {
 protected:
  Tokenizer tokenizer_ = Tokenizer::load(kGolden + GetParam() + ".json").value();
  const json& expected_ = expected()["tokenizers"][GetParam()];
};

TEST_P(GoldenTest, SamplesHaveTheIdsOfThePackage) {
  const json& samples = expected()["samples"];
  for (std::size_t i = 0; i < samples.size(); ++i)
    EXPECT_EQ(encoded(tokenizer_, bytes_of_hex(samples[i])), expected_["samples"][i].get<Ids>()) << "sample " << i;
}

TEST_P(GoldenTest, ATextOfManyScriptsHasTheIdsOfThePackage) {
  const std::string text = file_text(kGolden + "text.bin");
  ASSERT_GT(text.size(), 40'000u);
  for (const auto& [size, digest] : expected_["digests"].items())
    EXPECT_EQ(digest_of(encoded_in_documents(tokenizer_, text, std::stoul(size))), digest) << size << " bytes";
}

TEST_P(GoldenTest, IdsBecomeTheTextOfThePackage) {
  const json& samples = expected_["samples"];
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(tokenizer_.decode(samples[i].get<Ids>(), true), expected_["texts"][i]) << "sample " << i;
    EXPECT_EQ(tokenizer_.decode(samples[i].get<Ids>(), false), expected_["plain_texts"][i]) << "sample " << i;
  }
}

TEST_P(GoldenTest, SeveralThreadsGetTheSameIds) {
  const std::string text = file_text(kGolden + "text.bin");
  const Ids alone = encoded_in_documents(tokenizer_, text, 4096);
  std::vector<Ids> ids(4);
  std::vector<std::thread> threads;
  for (Ids& own : ids) threads.emplace_back([&] { own = encoded_in_documents(tokenizer_, text, 4096); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(ids, testing::Each(alone));
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenTest,
                         testing::Values("gpt2", "llama3", "qwen2", "smollm", "o200k", "other_splits", "llama2",
                                         "mistral", "metaspace", "inner_marks"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace shoal
