#include "text/documents.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "common/ids.h"
#include "tests/common/irregular_files.h"
#include "tests/common/scratch_folder.h"
#include "tests/text/packed.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Documents = std::vector<std::string>;

class DocumentsTest : public testing::Test {
 protected:
  // The documents of files, put together again of their pieces.
  static Result<Documents> read(std::vector<std::string> files, DocumentOptions options = {}) {
    DocumentReader reader(std::move(files), std::move(options));
    Documents documents;
    Piece piece;
    for (bool begun = false;; begun = !piece.ends_document) {
      SHOAL_ASSIGN(const bool given, reader.next(piece));
      if (!given) return documents;
      EXPECT_LE(piece.text.size(), kPieceBytesMax);
      if (!begun) documents.emplace_back();
      documents.back() += piece.text;
    }
  }
  Result<Documents> read(const std::string& name, const std::string& content, DocumentOptions options = {}) const {
    return read({folder_.write(name, content)}, std::move(options));
  }
  static std::string long_text(std::size_t bytes) {
    std::string text;
    for (std::uint64_t i = 0; text.size() < bytes; ++i) text += "word" + std::to_string(mix64(i) % 1000) + " and ";
    return text;
  }
  ScratchFolder folder_;
};

TEST_F(DocumentsTest, AFileIsADocument) {
  EXPECT_THAT(*read({folder_.write("a.txt", "one\ntwo\n"), folder_.write("b", "three")}),
              ElementsAre("one\ntwo\n", "three"));
  EXPECT_THAT(*read("empty.txt", ""), ElementsAre(""));
}

TEST_F(DocumentsTest, OrEachOfItsLinesIs) {
  EXPECT_THAT(*read("l.txt", "one\r\n\ntwo\nthree", {.lines = true}), ElementsAre("one", "", "two", "three"));
  EXPECT_THAT(*read("m.txt", "one\n", {.lines = true}), ElementsAre("one"));
  EXPECT_THAT(*read("n.txt", "", {.lines = true}), ElementsAre());
}

TEST_F(DocumentsTest, LinesOfJsonHaveTheirTextInAField) {
  const std::string lines =
      "{\"id\": 1, \"text\": \"a\\nb \\u00e9\", \"meta\": {\"text\": \"not this\", \"list\": [1, [\"x\"]]}}\r\n"
      "\n"
      "{\"text\":\"\"}\n"
      "{\"meta\":{\"text\":\"nor this\"},\"text\":\"last\"}";
  EXPECT_THAT(*read("j.jsonl", lines), ElementsAre("a\nb \u00e9", "", "last"));
  EXPECT_THAT(*read("k.ndjson", "{\"body\":\"x\",\"text\":3}\n", {.field = "body"}), ElementsAre("x"));
}

TEST_F(DocumentsTest, ABadLineOfJsonIsNamedByFileAndLine) {
  for (const auto& [line, why] : {std::pair<std::string, std::string>("{\"text\":\"a\"", "is no JSON from column"),
                                  {"{\"text\":\"a\"} {}", "is no JSON from column"},
                                  {"{\"text\":\"\xff\"}", "is no JSON from column"},
                                  {"{\"test\":\"a\"}", "has no field \"text\""},
                                  {"{\"a\":{\"text\":\"a\"}}", "has no field \"text\""},
                                  {"{\"text\":null}", "has no text as field \"text\""},
                                  {"{\"text\":[\"a\"]}", "has no text as field \"text\""},
                                  {"{\"text\":{\"text\":\"a\"}}", "has no text as field \"text\""},
                                  {"[\"text\"]", "is no object"},
                                  {"\"text\"", "is no object"},
                                  {"7", "is no object"}}) {
    const auto documents = read("bad.jsonl", "{\"text\":\"a\"}\n" + line + "\n{\"text\":\"b\"}\n");
    ASSERT_FALSE(documents.ok()) << line;
    EXPECT_EQ(documents.code(), ErrorCode::kMalformed);
    EXPECT_THAT(documents.error().message, AllOf(HasSubstr("bad.jsonl:2: the line " + why), HasSubstr("HINT"))) << line;
  }
}

TEST_F(DocumentsTest, ALineOfJsonIsBounded) {
  const std::string begin = "{\"text\":\"", end = "\"}";
  const std::string most(kJsonLineBytesMax - begin.size() - end.size(), 'x');
  EXPECT_EQ(read("most.jsonl", begin + most + end)->front().size(), most.size());
  const auto more = read("more.jsonl", begin + most + "x" + end);
  EXPECT_EQ(more.code(), ErrorCode::kTooLarge);
  EXPECT_THAT(more.error().message, HasSubstr("more.jsonl:1: the line has more than 64 MiB"));
}

TEST_F(DocumentsTest, PackedFilesAreReadByTheirEnding) {
  const std::string text = long_text(3u << 20);
  EXPECT_THAT(*read("a.txt.gz", gzip_of(text)), ElementsAre(text));
  EXPECT_THAT(*read("two.txt.gz", gzip_of("one, ") + gzip_of("two")), ElementsAre("one, two"));
  EXPECT_THAT(*read("b.txt.zst", zstd_of(text)), ElementsAre(text));
  EXPECT_THAT(*read("two.txt.zst", zstd_of("one, ") + zstd_of("two")), ElementsAre("one, two"));
  EXPECT_THAT(*read("c.jsonl.gz", gzip_of("{\"text\":\"a\"}\n{\"text\":\"b\"}\n")), ElementsAre("a", "b"));
  EXPECT_THAT(*read("d.jsonl.zst", zstd_of("{\"text\":\"a\"}\n")), ElementsAre("a"));
  EXPECT_THAT(*read("e.txt.gz", gzip_of("")), ElementsAre(""));
}

TEST_F(DocumentsTest, APackedFileThatIsCutOrChangedIsNamed) {
  const std::string text = long_text(100'000);
  for (const auto& [ending, packed] :
       {std::pair<std::string, std::string>(".gz", gzip_of(text)), {".zst", zstd_of(text)}}) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{9}, packed.size() / 2, packed.size() - 1}) {
      const auto cut = read("cut.txt" + ending, packed.substr(0, size));
      EXPECT_EQ(cut.code(), ErrorCode::kCorrupt) << ending << " of " << size;
    }
    std::string changed = packed;
    changed[0] ^= 1;
    const auto damaged = read("damaged.txt" + ending, changed);
    ASSERT_EQ(damaged.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(damaged.error().message, AllOf(HasSubstr("damaged.txt" + ending), HasSubstr("HINT")));
    EXPECT_EQ(read("behind.txt" + ending, packed + "garbage behind it").code(), ErrorCode::kCorrupt) << ending;
  }
  std::string changed = gzip_of(text);
  changed[changed.size() - 6] ^= 1;  // the sum
  EXPECT_EQ(read("sum.txt.gz", changed).code(), ErrorCode::kCorrupt);
}

// Such a window is memory that the file would make us take.
TEST_F(DocumentsTest, AWindowAbove128MiBIsRefused) {
  EXPECT_THAT(*read("most.txt.zst", zstd_of("text", 27)), ElementsAre("text"));
  const auto large = read("large.txt.zst", zstd_of("text", 28));
  EXPECT_EQ(large.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(large.error().message, AllOf(HasSubstr("above 128 MiB"), HasSubstr("--long")));
}

TEST_F(DocumentsTest, ALongDocumentIsCutBetweenTwoWords) {
  const std::string text = long_text(3 * kPieceBytesMax);
  std::string json = "{\"text\":\"" + text + "\"}\n{\"text\":\"next\"}\n";
  for (const auto& [name, content, lines] : {std::tuple<std::string, std::string, bool>("a.txt", text, false),
                                             {"b.txt", text + "\nnext\n", true},
                                             {"c.jsonl", json, false}}) {
    DocumentReader reader({folder_.write(name, content)}, {.lines = lines});
    std::string whole;
    Piece piece;
    for (int pieces = 0; whole.size() < text.size(); ++pieces) {
      ASSERT_TRUE(*reader.next(piece)) << name;
      EXPECT_TRUE(pieces == 0 || (piece.text[0] == ' ' && piece.text[1] != ' ')) << name;
      EXPECT_EQ(piece.ends_document, whole.size() + piece.text.size() == text.size()) << name;
      whole += piece.text;
    }
    EXPECT_EQ(whole, text) << name;
    EXPECT_TRUE(name == "a.txt" || (*reader.next(piece) && piece.text == "next")) << name;
    EXPECT_FALSE(*reader.next(piece)) << name;
  }
}

// No blank anywhere, and a character is not cut.
TEST_F(DocumentsTest, ATextWithoutBlanksIsCutBetweenCharacters) {
  std::string text = "x";
  while (text.size() < 2 * kPieceBytesMax) text += "\u00e9";
  DocumentReader reader({folder_.write("a.txt", text)}, {});
  Piece piece;
  ASSERT_TRUE(*reader.next(piece));
  EXPECT_EQ(piece.text.size(), kPieceBytesMax - 1);
  EXPECT_EQ((*read("a.txt", text)), Documents{text});
}

TEST_F(DocumentsTest, CountsTheBytesOfTheFilesThemselves) {
  const std::string packed = gzip_of(long_text(2u << 20));
  DocumentReader reader({folder_.write("a.txt.gz", packed), folder_.write("b.txt", "12345")}, {});
  Piece piece;
  while (*reader.next(piece)) {
  }
  EXPECT_EQ(reader.taken(), packed.size() + 5);
}

TEST_F(DocumentsTest, NamesWhatIsNoFile) {
  EXPECT_EQ(read({folder_ / "absent.txt"}).code(), ErrorCode::kMissing);
  for (const auto& [path, kind] : irregular_files(folder_)) EXPECT_EQ(read({path}).code(), ErrorCode::kInput) << path;
}

}  // namespace
}  // namespace shoal
