#include "text/prepare.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "common/fault.h"
#include "runtime/data/token_file.h"
#include "tests/common/scratch_folder.h"
#include "tests/text/packed.h"
#include "text/tokenizer.h"

namespace shoal {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kEnd = 256;

// Each byte is an id.
TextEncoder bytes_encoder() {
  TextEncoder encoder{.encode =
                          [](std::string_view text, std::vector<std::uint32_t>& ids) {
                            for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
                          },
                      .vocabulary = 257,
                      .end_of_text = kEnd};
  encoder.digest.bytes[0] = 9;
  return encoder;
}

class PrepareTest : public testing::Test {
 protected:
  ~PrepareTest() override { disarm_faults(); }
  PrepareOptions options(std::vector<std::string> inputs) const {
    return {.inputs = std::move(inputs), .out = folder_ / "out.bin", .threads = 2};
  }
  std::vector<std::uint32_t> ids(DType width = DType::kU16) const {
    const auto file = TokenFile::open(folder_ / "out.bin", width, 70'000);
    EXPECT_TRUE(file.ok()) << file.error().message;
    std::vector<std::uint32_t> found;
    for (std::uint64_t i = 0; i < file->tokens(); ++i) found.push_back(id_at(file->ids(), width, i));
    return found;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (entry.path().filename().string().starts_with("out.bin")) found.push_back(entry.path().filename());
    return found;
  }
  // Many documents of all sizes, some of several pieces and some empty.
  std::vector<std::string> many_documents() const {
    std::string lines;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      lines += "{\"text\":\"";
      const std::uint64_t words = i % 1000 == 7 ? 400'000 : mix64(i) % 60;
      for (std::uint64_t word = 0; word < words; ++word) lines += "w" + std::to_string(mix64(i, word) % 100) + " ";
      lines += "\"}\n";
    }
    return {folder_.write("many.jsonl", lines), folder_.write("a.txt.gz", gzip_of("one")),
            folder_.write("b.txt.zst", zstd_of("two")), folder_.write("c.txt", "")};
  }
  ScratchFolder folder_;
};

TEST_F(PrepareTest, WritesIdsAndWhatTheyAre) {
  const std::string a = folder_.write("a.txt", "ab"), b = folder_.write("b.txt", "c");
  const auto prepared = prepare_text(bytes_encoder(), options({a, folder_.write("empty.txt", ""), b}));
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  EXPECT_EQ(ids(), (std::vector<std::uint32_t>{'a', 'b', kEnd, 'c', kEnd}));
  EXPECT_EQ(prepared->empty_documents, 1u);
  EXPECT_EQ(prepared->text_bytes, 3u);
  const auto sidecar = load_sidecar(folder_ / "out.bin");
  ASSERT_TRUE(sidecar.ok() && sidecar->has_value());
  EXPECT_EQ((*sidecar)->documents, 2u);
  EXPECT_EQ((*sidecar)->tokens, 5u);
  EXPECT_EQ((*sidecar)->vocabulary, 257u);
  EXPECT_EQ((*sidecar)->tokenizer, bytes_encoder().digest);
  EXPECT_EQ((*sidecar)->source.size(), 3u);
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(PrepareTest, WidthAndHeaderAreAsAskedFor) {
  PrepareOptions wanted = options({folder_.write("a.txt", "ab")});
  wanted.header = TokenHeader::kLlmc;
  wanted.end_of_text = false;
  for (const DType width : {DType::kU16, DType::kU32}) {
    wanted.width = width;
    ASSERT_TRUE(prepare_text(bytes_encoder(), wanted).ok());
    EXPECT_EQ(ids(width), (std::vector<std::uint32_t>{'a', 'b'}));
    EXPECT_EQ(TokenFile::open(wanted.out, width, 300)->header(), TokenHeader::kLlmc);
  }
  TextEncoder large = bytes_encoder();
  large.vocabulary = 70'000;
  wanted.width.reset();
  EXPECT_EQ(prepare_text(large, wanted)->sidecar.width, DType::kU32);
  wanted.width = DType::kU16;
  EXPECT_THAT(prepare_text(large, wanted).error().message, HasSubstr("70000 ids, which u16 cannot say. HINT: --width"));
}

TEST_F(PrepareTest, ManyThreadsWriteWhatOneDoes) {
  PrepareOptions one = options(many_documents());
  one.threads = 1;
  const auto alone = prepare_text(bytes_encoder(), one);
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  const std::string expected = ScratchFolder::read(one.out), told = ScratchFolder::read(sidecar_path(one.out));
  EXPECT_GT(expected.size(), 8u << 20);
  EXPECT_GT(alone->empty_documents, 1u);
  PrepareOptions many = one;
  many.threads = 7;
  ASSERT_TRUE(prepare_text(bytes_encoder(), many).ok());
  EXPECT_TRUE(ScratchFolder::read(one.out) == expected);
  EXPECT_EQ(ScratchFolder::read(sidecar_path(one.out)), told);
}

// A long document is encoded in pieces, also one without a letter or blank of Latin script at any end of a line.
TEST_F(PrepareTest, TheIdsOfALongDocumentAreThoseOfTheWhole) {
  std::string mixed, cyrillic = "11";
  for (std::uint64_t i = 0; mixed.size() < 3 * kPieceBytesMax; ++i)
    mixed += (i % 7 == 0    ? "It's 12345, "
              : i % 11 == 0 ? "\n\n  Ab"
                            : "word") +
             std::to_string(mix64(i) % 50) + " so on ";
  while (cyrillic.size() < 3 * kPieceBytesMax) cyrillic += "вода берег лодка.\n\n";
  for (const char* name : {"gpt2", "llama3", "qwen2", "smollm", "o200k"}) {
    const auto tokenizer = Tokenizer::load(SHOAL_SOURCE_DIR "/tests/text/golden/" + std::string(name) + ".json");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    const TextEncoder encoder{
        .encode = [&](std::string_view piece, std::vector<std::uint32_t>& into) { tokenizer->encode(piece, into); },
        .vocabulary = tokenizer->vocabulary(),
        .cut = [&](std::string_view piece, std::size_t most) { return tokenizer->safe_cut(piece, most); }};
    for (const std::string& text : {mixed, cyrillic}) {
      PrepareOptions wanted = options({folder_.write("long.txt", text)});
      wanted.end_of_text = false;
      const auto prepared = prepare_text(encoder, wanted);
      ASSERT_TRUE(prepared.ok()) << prepared.error().message;
      EXPECT_EQ(prepared->sidecar.documents, 1u);
      std::vector<std::uint32_t> whole;
      tokenizer->encode(text, whole);
      EXPECT_TRUE(ids() == whole) << name;
    }
  }
}

TEST_F(PrepareTest, TellsWhatWasReadOtherwise) {
  const std::string text = folder_.write("a.txt", "caf\xe9"), lines = folder_.write("b.jsonl", R"({"text":"\ud83d"})");
  EXPECT_EQ(prepare_text(bytes_encoder(), options({text, lines, text}))->changes.replaced, 3u);
  const std::string wide = folder_.write("c.txt", std::string("t\0w\0o\0", 6));
  EXPECT_EQ(prepare_text(bytes_encoder(), options({text, wide, wide}))->changes.converted, 2u);
}

TEST_F(PrepareTest, OneThatIsInterruptedLeavesWhatWasThere) {
  folder_.write("out.bin", "old");
  PrepareOptions wanted = options(many_documents());
  int asked = 0;
  wanted.stop = [&asked] { return ++asked > 3; };
  EXPECT_EQ(prepare_text(bytes_encoder(), wanted).code(), ErrorCode::kInterrupted);
  EXPECT_EQ(ScratchFolder::read(wanted.out), "old");
  EXPECT_THAT(names(), testing::ElementsAre("out.bin"));
}

// Each step of each file in turn, the last rename too.
TEST_F(PrepareTest, ADiskThatIsFullLeavesNothing) {
  PrepareOptions wanted = options({folder_.write("a.txt", "ab"), folder_.write("b.txt", "c")});
  wanted.header = TokenHeader::kLlmc;
  for (int step = 1;; ++step) {
    disarm_faults();
    ASSERT_TRUE(arm_faults("output.step=error@" + std::to_string(step)).ok());
    const auto prepared = prepare_text(bytes_encoder(), wanted);
    if (prepared.ok()) {
      EXPECT_GT(step, 10) << "of two files open, write, sync and rename, and the header twice";
      return;
    }
    EXPECT_THAT(prepared.error().message, HasSubstr("No space left")) << step;
    EXPECT_TRUE(names().empty()) << step;
  }
}

// In front of each document stands what begins a text, also where one is cut into pieces, and the threads are many.
TEST_F(PrepareTest, EachDocumentBeginsAsTheTokenizerHasIt) {
  TextEncoder encoder = bytes_encoder();
  encoder.vocabulary = 300;
  encoder.begin = {298, 299};
  PrepareOptions wanted = options(many_documents());
  const std::uint64_t documents = prepare_text(encoder, wanted)->sidecar.documents;
  const std::vector<std::uint32_t> framed = ids();
  EXPECT_EQ(static_cast<std::uint64_t>(std::ranges::count(framed, 298u)), documents);
  for (std::size_t i = 0; i < framed.size(); ++i) {
    const bool first = i == 0 || framed[i - 1] == kEnd;
    ASSERT_EQ(framed[i] == 298, first) << i;
    if (first) {
      ASSERT_EQ(framed[i + 1], 299u);
    }
  }
  wanted.begin_of_text = false;
  ASSERT_TRUE(prepare_text(encoder, wanted).ok());
  std::vector<std::uint32_t> bare;
  std::ranges::copy_if(framed, std::back_inserter(bare), [](std::uint32_t id) { return id < 298; });
  EXPECT_TRUE(ids() == bare);
}

TEST_F(PrepareTest, ABadInputLeavesNothing) {
  const std::string good = folder_.write("good.txt", "text");
  for (const auto& [bad, code] :
       {std::pair(folder_.write("bad.jsonl", "{\"text\":\"a\"}\nnonsense\n"), ErrorCode::kMalformed),
        {folder_.write("cut.txt.gz", gzip_of("text").substr(0, 15)), ErrorCode::kCorrupt},
        {folder_ / "absent.txt", ErrorCode::kMissing}}) {
    EXPECT_EQ(prepare_text(bytes_encoder(), options({good, bad})).code(), code) << bad;
    EXPECT_TRUE(names().empty()) << bad;
  }
}

TEST_F(PrepareTest, InputsWithoutTextAreRefused) {
  const auto prepared =
      prepare_text(bytes_encoder(), options({folder_.write("a.txt", ""), folder_.write("b.jsonl", "\n")}));
  EXPECT_EQ(prepared.code(), ErrorCode::kInput);
  EXPECT_THAT(prepared.error().message, HasSubstr("the inputs have no text: 1 empty documents"));
  EXPECT_TRUE(names().empty());
}

TEST_F(PrepareTest, RefusesWhatCannotBeMeant) {
  TextEncoder endless = bytes_encoder();
  endless.end_of_text.reset();
  PrepareOptions wanted = options({folder_.write("a.txt", "ab")});
  EXPECT_THAT(prepare_text(endless, wanted).error().message, HasSubstr("HINT: --no-eot"));
  wanted.end_of_text = false;
  EXPECT_TRUE(prepare_text(endless, wanted).ok());
  wanted.inputs.push_back(wanted.out);
  EXPECT_THAT(prepare_text(bytes_encoder(), wanted).error().message, HasSubstr("out.bin is an input"));
  wanted.inputs.pop_back();
  for (const std::string& tokenizer : {wanted.out, wanted.out + ".json"}) {
    wanted.tokenizer = tokenizer;
    EXPECT_THAT(prepare_text(bytes_encoder(), wanted).error().message, HasSubstr("is an input")) << tokenizer;
  }
  std::filesystem::create_directory(folder_ / "other.bin.json");
  for (const std::string& out :
       {folder_ / "absent/out.bin", folder_.path(), folder_ / "other.bin", std::string("/dev/null"), std::string()}) {
    wanted.out = out;
    EXPECT_EQ(prepare_text(bytes_encoder(), wanted).code(), ErrorCode::kOutput) << out;
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(PrepareTest, HeadwayEndsAtTheSizeOfTheInputs) {
  PrepareOptions wanted = options(many_documents());
  std::uint64_t last = 0, size = 0;
  wanted.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_LE(last, done);
    last = done;
    size = total;
  };
  ASSERT_TRUE(prepare_text(bytes_encoder(), wanted).ok());
  EXPECT_EQ(last, size);
  EXPECT_GT(size, 0u);
}

}  // namespace
}  // namespace shoal
