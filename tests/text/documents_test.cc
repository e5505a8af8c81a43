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

TEST_F(DocumentsTest, PackedFilesAreReadWhateverTheirName) {
  const std::string text = long_text(3u << 20);
  EXPECT_THAT(*read("a.txt.gz", gzip_of(text)), ElementsAre(text));
  EXPECT_THAT(*read("two.txt.gz", gzip_of("one, ") + gzip_of("two")), ElementsAre("one, two"));
  EXPECT_THAT(*read("b.txt.zst", zstd_of(text)), ElementsAre(text));
  EXPECT_THAT(*read("two.txt.zst", zstd_of("one, ") + zstd_of("two")), ElementsAre("one, two"));
  EXPECT_THAT(*read("c.jsonl.gz", gzip_of("{\"text\":\"a\"}\n{\"text\":\"b\"}\n")), ElementsAre("a", "b"));
  EXPECT_THAT(*read("d.jsonl.zst", zstd_of("{\"text\":\"a\"}\n")), ElementsAre("a"));
  EXPECT_THAT(*read("e.txt.gz", gzip_of("")), ElementsAre(""));
  for (const char* name : {"f", "f.txt", "f.gz", "f.zst"})
    for (const std::string& packed : {gzip_of("text"), zstd_of("text")})
      EXPECT_THAT(*read(name, packed), ElementsAre("text")) << name;
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

// What common writers put into lines of JSON, and what each line's text then is.
TEST_F(DocumentsTest, LinesOfJsonAreReadAsProgramsWriteThem) {
  for (const auto& [line, text, replaced] :
       {std::tuple<std::string, std::string, std::uint64_t>{R"({"text":"a \ud83d b"})", "a \ufffd b", 1},
        {R"({"text":"a \ude00 b"})", "a \ufffd b", 1},
        {R"({"text":"\ud83d\ud83d\ude00"})", "\ufffd\U0001F600", 1},
        {R"({"text":"\uD83D\u0041"})", "\ufffdA", 1},
        {R"({"text":"\\ud83d \ud83d"})", "\\ud83d \ufffd", 1},
        {R"({"note":"\udfff","text":"x"})", "x", 1},
        {"{\"text\":\"caf\xe9\"}", "caf\ufffd", 1},
        {"{\"\xe9\":1,\"text\":\"x\"}", "x", 1},
        {R"({"score":NaN,"text":"NaN"})", "NaN", 0},
        {R"({"s":[Infinity,{"t":-Infinity}],"text":"\"Infinity"})", "\"Infinity", 0},
        {R"({"text":"\ud83d\ude00"})", "\U0001F600", 0}}) {
    DocumentReader reader({folder_.write("w.jsonl", "{\"text\":\"a\"}\n" + line + "\n{\"text\":\"b\"}\n")}, {});
    Piece piece;
    ASSERT_TRUE(*reader.next(piece));
    const auto given = reader.next(piece);
    ASSERT_TRUE(given.ok()) << line << ": " << given.error().message;
    EXPECT_EQ(piece.text, text) << line;
    EXPECT_TRUE(*reader.next(piece) && piece.text == "b" && !*reader.next(piece)) << line;
    EXPECT_EQ(reader.changes().replaced, replaced) << line;
  }
  EXPECT_EQ(read("n.jsonl", R"({"text":NaN})").code(), ErrorCode::kMalformed);
}

TEST_F(DocumentsTest, JsonIsKnownByItsContent) {
  const std::string one = R"({"id":1,"text":"a {b}"})", two = R"({"text":"c]","list":[{"text":"no"}]})";
  for (const std::string& content :
       {one + "\n" + two + "\n", one + "\r\n\r\n" + two, one + "\r" + two, one + two, "[" + one + "," + two + "]",
        " [\n  " + one + ",\n  " + two + "\n]\n", "\xEF\xBB\xBF" + one + "\n" + two,
        std::string("{\n \"text\":\n \"a {b}\"\n}\n{\n \"text\": \"c]\"}")}) {
    for (const char* name : {"j.json", "j.txt", "j"})
      EXPECT_THAT(*read(name, content), ElementsAre("a {b}", "c]")) << name << ": " << content;
    EXPECT_THAT(*read("j.json.gz", gzip_of(content)), ElementsAre("a {b}", "c]")) << content;
  }
  EXPECT_THAT(*read("one.json", R"({"text":"a"})"), ElementsAre("a"));
  EXPECT_THAT(*read("a.jsonl", "[" + one + "," + two + "]"), ElementsAre("a {b}", "c]"));
  for (const std::string text : {"[1] a note", "[{see}] b", "{ x }", R"({"name":"a package of code"})",
                                 "{\"a\" is no JSON", "{\\bf bold}", "[]", "[", "{"})
    EXPECT_THAT(*read("t.txt", text), ElementsAre(text)) << text;
  const auto other = read("o.json", one + "\n{\"body\":\"x\"}\n");
  EXPECT_EQ(other.code(), ErrorCode::kMalformed);
  EXPECT_THAT(other.error().message, HasSubstr("o.json:2: the line has no field \"text\""));
  EXPECT_THAT(read("p.json", "[" + one + ",{\"body\":\"x\"}]").error().message,
              HasSubstr("p.json: object 2: it has no"));
  EXPECT_EQ(read("q.json", "[" + one + ",7]").code(), ErrorCode::kMalformed);
  EXPECT_EQ(read("r.json", "[" + one + ",{\"text\":").code(), ErrorCode::kMalformed);
}

TEST_F(DocumentsTest, CarriageReturnsEndLinesToo) {
  for (const char* end : {"\n", "\r", "\r\n"})
    EXPECT_THAT(*read("l.txt", "one" + std::string(end) + end + "two" + end, {.lines = true}),
                ElementsAre("one", "", "two"));
}

TEST_F(DocumentsTest, WhatUtf8CannotSayIsCounted) {
  const std::string path = folder_.write("latin.txt", std::string(1000, 'x') + "\xe9t\xe9");
  DocumentReader reader({path, path}, {});
  Piece piece;
  ASSERT_TRUE(*reader.next(piece));
  EXPECT_EQ(piece.text, std::string(1000, 'x') + "\ufffdt\ufffd");
  ASSERT_TRUE(*reader.next(piece));
  EXPECT_EQ(reader.changes().replaced, 4u);
}

TEST_F(DocumentsTest, ZerosBehindPackedTextAreNone) {
  for (const std::size_t zeros : {1, 511, 300'000})
    EXPECT_THAT(*read("z.txt.gz", gzip_of("one, ") + gzip_of("two") + std::string(zeros, '\0')),
                ElementsAre("one, two"));
  EXPECT_EQ(read("z.txt.gz", gzip_of("one") + std::string(9, '\0') + "more").code(), ErrorCode::kCorrupt);
}

TEST_F(DocumentsTest, KnowsWhoseBytesAreTheText) {
  for (const auto& [content, plain] : {std::pair<std::string, bool>("text", true),
                                       {gzip_of("text"), false},
                                       {std::string("t\0e\0x\0t\0", 8), false},
                                       {R"({"text":"a"})", false}})
    EXPECT_EQ(*DocumentReader::is_plain_text(folder_.write("x", content)), plain) << content;
  EXPECT_EQ(DocumentReader::is_plain_text(folder_.write("x", "BZh91AY&SY\x01\x9c")).code(), ErrorCode::kInput);
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
