// Files that are no text in UTF-8, and texts in all the ways that they come.
#include <gmock/gmock.h>

#include "common/byte_codec.h"
#include "runtime/data/token_file.h"
#include "tests/common/scratch_folder.h"
#include "tests/text/packed.h"
#include "tests/text/tokenizer_texts.h"
#include "text/documents.h"
#include "text/text_content.h"
#include "text/utf8.h"

namespace shoal {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

Result<std::string> read(const std::string& path) {
  DocumentReader reader({path}, {});
  std::string text;
  Piece piece;
  while (true) {
    SHOAL_ASSIGN(const bool given, reader.next(piece));
    if (!given) return text;
    text += piece.text;
  }
}

std::string utf16_of(std::u16string_view text, bool big) {
  std::string bytes;
  for (const char16_t unit : text) {
    bytes.push_back(static_cast<char>(big ? unit >> 8 : unit & 0xFF));
    bytes.push_back(static_cast<char>(big ? unit & 0xFF : unit >> 8));
  }
  return bytes;
}

struct Foreign {
  std::string begin, what, command;
};

class ForeignTest : public testing::TestWithParam<Foreign> {};

// Neither the name nor a packing around it hides what it is.
TEST_P(ForeignTest, IsRefusedByKindWithACommand) {
  ScratchFolder folder;
  const auto& [begin, what, command] = GetParam();
  std::string content = begin;
  for (std::uint64_t i = 0; i < 500; ++i) content.push_back(static_cast<char>(mix64(i)));
  for (const char* name : {"a.txt", "a.jsonl", "a.bin", "a"}) {
    const std::string path = folder.write(name, content);
    const auto text = read(path);
    ASSERT_EQ(text.code(), ErrorCode::kInput) << name;
    EXPECT_THAT(text.error().message, AllOf(HasSubstr(path + " is " + what), HasSubstr("HINT"), HasSubstr(command)));
    const auto ids = TokenFile::open(path, DType::kU8, 256);
    EXPECT_TRUE(begin.empty() ? ids.ok() : ids.code() == ErrorCode::kInput) << name;
  }
  EXPECT_EQ(read(folder.write("a.txt.gz", gzip_of(content))).code(), ErrorCode::kInput);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ForeignTest,
                         testing::Values(Foreign{"PAR1\x15\x04", "a Parquet table", "read_parquet"},
                                         Foreign{"ARROW1\0\0"s, "an Arrow table", "read_feather"},
                                         Foreign{"BZh91AY&SY", "compressed by bzip2", "bunzip2"},
                                         Foreign{"\xFD"
                                                 "7zXZ\0"s,
                                                 "compressed by xz", "xz -dk"},
                                         Foreign{"\x04\x22\x4D\x18", "compressed by lz4", "lz4"},
                                         Foreign{"PK\x03\x04", "a zip archive", "unzip"},
                                         Foreign{"7z\xBC\xAF\x27\x1C", "a 7z archive", "7z x"},
                                         Foreign{"%PDF-1.5\n", "a PDF document", "pdftotext"},
                                         Foreign{"\x7F"
                                                 "ELF\x02\x01",
                                                 "a program", ""},
                                         Foreign{"SQLite format 3\0"s, "an SQLite database", "sqlite3"},
                                         Foreign{"\x89HDF\r\n\x1A\n", "an HDF5 file", ""},
                                         Foreign{"\x93NUMPY\x01", "an array of NumPy", ""},
                                         Foreign{std::string(257, '\0') + "ustar", "a tar archive", "tar -xf"},
                                         Foreign{"\xFF\xFE\0\0t\0\0\0"s, "text in UTF-32", "iconv -f UTF-32"},
                                         Foreign{"", "no text in UTF-8", "iconv -f ENCODING"}));

TEST(ContentTest, PackedTextIsNoTextWhereBytesAreLearned) {
  ScratchFolder folder;
  for (const auto& [content, command] : {std::pair(gzip_of("text"), "gunzip -k"),
                                         {zstd_of("text"), "zstd -d"},
                                         {utf16_of(u"text", false), "iconv -f UTF-16LE"}}) {
    const auto ids = TokenFile::open(folder.write("book.txt", content), DType::kU8, 256);
    ASSERT_EQ(ids.code(), ErrorCode::kInput) << command;
    EXPECT_THAT(ids.error().message, AllOf(HasSubstr(command), HasSubstr("shoal data prepare")));
  }
}

TEST(ContentTest, APointerOfGitLfsIsNoText) {
  ScratchFolder folder;
  EXPECT_THAT(read(folder.write("x.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:1\n")).error().message,
              HasSubstr("git lfs pull"));
}

TEST(ContentTest, TextThatBeginsAsAnotherKindIsText) {
  ScratchFolder folder;
  for (const std::string text :
       {"PAR1 is how it begins", "BZh", "MZ\n", "ORCA", "Obj", "PK", "Rar!", "ORCHID caf\xE9 bar", "\x1B[1mbold", "",
        "\n", "\xC3\xA9\xC3\xA9", "a\fb\tc\b", "ab\xE9", "\xEF\xBB"}) {
    EXPECT_EQ(judge_content(view_of(text)).form, TextContent::Form::kUtf8) << text;
    EXPECT_TRUE(read(folder.write("x", text)).ok()) << text;
  }
  std::string few(1000, 'x');
  few[500] = '\0';
  EXPECT_EQ(judge_content(view_of(few)).form, TextContent::Form::kUtf8);
}

// Every way that a text comes gives the same text, at every length: what is cut is never more than one character.
TEST(ContentTest, EveryFormOfATextIsTheSameText) {
  ScratchFolder folder;
  const std::u16string samples[] = {u"The boat lies at the pier.\n", u"Лодка у берега, и вода.\n",
                                    u"船在码头。 水面平静。\n", u"Emoji \U0001F600 and more \U0001F680.\n"};
  for (const std::u16string& sample : samples) {
    std::u16string units;
    while (units.size() < 300'000) units += sample;
    std::string expected;
    for (std::size_t i = 0; i < units.size(); ++i) {
      const bool pair = is_first_half(units[i]);
      append_character(expected, pair ? 0x10000 + ((units[i] - 0xD800u) << 10) + (units[i + 1] - 0xDC00u) : units[i]);
      i += pair ? 1 : 0;
    }
    for (const bool big : {false, true}) {
      for (const std::u16string mark : {u"", u"\uFEFF"}) {
        const auto text = read(folder.write("x.txt", utf16_of(mark + units, big)));
        ASSERT_TRUE(text.ok()) << text.error().message;
        EXPECT_TRUE(*text == expected) << big << mark.size();
      }
    }
    EXPECT_TRUE(*read(folder.write("x.txt", "\xEF\xBB\xBF" + expected)) == expected);
    EXPECT_TRUE(*read(folder.write("x.txt", expected)) == expected);
  }
  EXPECT_EQ(
      *read(folder.write("x.txt", "\xFF\xFE" + utf16_of(u"ab", false) + "\x3D\xD8" + utf16_of(u"c", false) + "d")),
      "ab\uFFFDc\uFFFD");
}

TEST(ContentTest, TheMarkIsNoPartOfATextOfBytes) {
  ScratchFolder folder;
  const auto file = TokenFile::open(folder.write("x.txt", "\xEF\xBB\xBFtext"), DType::kU8, 256);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->tokens(), 4u);
  EXPECT_EQ(id_at(file->ids(), DType::kU8, 0), 't');
}

TEST(ContentTest, IdsOf32BitsAreNotReadAs16) {
  ScratchFolder folder;
  for (const std::uint32_t vocabulary : {300u, 50'257u, 65'536u, 151'936u}) {
    std::vector<std::uint8_t> wide, narrow;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      append_le(wide, static_cast<std::uint32_t>(mix64(i) % vocabulary));
      append_le(narrow, static_cast<std::uint16_t>(mix64(i) % vocabulary));
    }
    const std::string path = folder.write("w.bin", std::string(wide.begin(), wide.end()));
    EXPECT_TRUE(TokenFile::open(path, DType::kU32, vocabulary).ok());
    EXPECT_THAT(TokenFile::open(path, DType::kU16, 65'536).error().message, HasSubstr("width = \"u32\"")) << vocabulary;
    EXPECT_TRUE(
        TokenFile::open(folder.write("n.bin", std::string(narrow.begin(), narrow.end())), DType::kU16, 65'536).ok());
  }
}

}  // namespace
}  // namespace shoal
