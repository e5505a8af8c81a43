#include "text/text_content.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "common/file_pointer.h"
#include "text/utf8.h"

namespace shoal {
namespace {

using namespace std::string_view_literals;

struct Kind {
  std::size_t at;
  std::string_view bytes, what, command;
};
// A text may begin as the upper ones do: they count where a control character follows soon.
constexpr std::size_t kPrintableKinds = 9;
constexpr std::string_view kTable =
    "python3 -c 'import pandas; pandas.READ(\"@\").to_json(\"@.jsonl\", orient=\"records\", lines=True)'";
// clang-format off
constexpr std::array kKinds = std::to_array<Kind>({
    {0, "PAR1", "a Parquet table", "read_parquet"},
    {0, "ARROW1", "an Arrow table", "read_feather"},
    {0, "FEA1", "a Feather table", "read_feather"},
    {0, "ORC", "an ORC table", "read_orc"},
    {0, "Obj\x01", "an Avro file", "avro-tools tojson @ > @.jsonl"},
    {0, "BZh", "compressed by bzip2", "bunzip2 -k @"},
    {0, "Rar!", "a RAR archive", "unrar x @"},
    {0, "MZ", "a program for Windows", ""},
    {257, "ustar", "a tar archive", "tar -xf @"},
    {0, kFilePointerBegin, "a pointer of git-lfs", "git lfs pull"},
    {0, "%PDF-", "a PDF document", "pdftotext @"},
    {0, "{\\rtf", "an RTF document", "pandoc -t plain @ > @.txt"},
    {0, "SQLite format 3\0"sv, "an SQLite database", "sqlite3 @ .dump"},
    {0, "\xFD" "7zXZ\0"sv, "compressed by xz", "xz -dk @"},
    {0, "\x1F\x8B", "compressed by gzip", "gunzip -k @"},
    {0, "\x28\xB5\x2F\xFD", "compressed by zstd", "zstd -d @"},
    {0, "\x04\x22\x4D\x18", "compressed by lz4", "lz4 -d @"},
    {0, "\x1F\x9D", "compressed by compress", "uncompress @"},
    {0, "LZIP\x01", "compressed by lzip", "lzip -dk @"},
    {0, "\x5D\0\0"sv, "compressed by lzma", "unlzma -k @"},
    {0, "7z\xBC\xAF\x27\x1C", "a 7z archive", "7z x @"},
    {0, "PK\x03\x04", "a zip archive (.zip, .docx, .epub, .npz)", "unzip @"},
    {0, "PK\x05\x06", "an empty zip archive", ""},
    {0, "\x7F" "ELF", "a program", ""},
    {0, "\0asm"sv, "a program of WebAssembly", ""},
    {0, "\xCA\xFE\xBA\xBE", "a program", ""},
    {0, "\xCF\xFA\xED\xFE", "a program", ""},
    {0, "\x89HDF\r\n", "an HDF5 file", "h5dump @"},
    {0, "\x93NUMPY", "an array of NumPy", ""},
    {0, "\xD0\xCF\x11\xE0", "a document of an old office program", "soffice --convert-to txt:Text @"},
    {0, "\x89PNG", "a picture", ""},
    {0, "\xFF\xD8\xFF", "a picture", ""},
    {0, "GIF8", "a picture", ""},
    {0, "\xFF\xFE\0\0"sv, "text in UTF-32", "iconv -f UTF-32 -t UTF-8 @ > @.txt"},
    {0, "\0\0\xFE\xFF"sv, "text in UTF-32", "iconv -f UTF-32 -t UTF-8 @ > @.txt"},
});
// clang-format on

bool is_control(char32_t c) { return (c < 0x20 && !(c >= 0x08 && c <= 0x0D) && c != 0x1B && c != 0x1A) || c == 0x7F; }

// No byte of a longer character is one.
std::size_t controls_in(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return is_control(static_cast<unsigned char>(c)); }));
}

// What no text has: control characters, and what is no UTF-8.
std::size_t foreign_in(std::string_view text) {
  std::uint64_t replaced = 0;
  with_replacements(whole_characters(text), &replaced);
  return replaced + controls_in(text);
}

// Whether each pair of bytes is a character of a text, or half a pair of one.
bool reads_as_utf16(std::string_view text, bool big) {
  bool within = false;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const char32_t unit = utf16_unit(text.substr(i), big);
    if (is_control(unit) || unit >= 0xFFFE || within != is_second_half(unit)) return false;
    within = is_first_half(unit);
  }
  return true;
}

TextContent utf16(bool big, std::size_t mark_bytes) {
  return {.form = big ? TextContent::Form::kUtf16Big : TextContent::Form::kUtf16Little,
          .mark_bytes = mark_bytes,
          .what = "text in UTF-16",
          .command = std::string("iconv -f UTF-16") +
                     (mark_bytes > 0 ? ""
                      : big          ? "BE"
                                     : "LE") +
                     " -t UTF-8 @ > @.txt"};
}

}  // namespace

TextContent judge_content(ByteView begin) {
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), std::min(begin.size(), kJudgedBytes));
  const bool controls_soon = controls_in(text.substr(0, 512)) > 0;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    const Kind& kind = kKinds[i];
    if (text.size() <= kind.at || !text.substr(kind.at).starts_with(kind.bytes)) continue;
    if (i < kPrintableKinds && !controls_soon) continue;
    const bool table = kind.command.starts_with("read_");
    std::string command(table ? kTable : kind.command);
    if (table) command.replace(command.find("READ"), 4, kind.command);
    return {.form = TextContent::Form::kKnown, .what = std::string(kind.what), .command = std::move(command)};
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) return utf16(text[0] == '\xFE', 2);
  if (text.starts_with("\xEF\xBB\xBF")) return {.mark_bytes = 3};
  const std::size_t foreign = foreign_in(text);
  if (foreign <= text.size() / 10) return {};
  std::array<std::size_t, 2> zeros{};
  for (std::size_t i = 0; i < text.size(); ++i) zeros[i % 2] += text[i] == 0 ? 1 : 0;
  const bool big = zeros[0] > zeros[1];
  if (zeros[big ? 1 : 0] * 10 < zeros[big ? 0 : 1] && reads_as_utf16(text, big)) return utf16(big, 0);
  constexpr std::size_t kFew = 8;  // of a short text they say nothing
  if (foreign > kFew)
    return {.form = TextContent::Form::kNotUtf8,
            .what = "no text in UTF-8",
            .command = "iconv -f ENCODING -t UTF-8 @ > @.txt, if it is text in another encoding"};
  return {};
}

std::string not_plain_text(const std::string& path, const TextContent& content) {
  std::string command = content.command;
  for (std::size_t at = 0; (at = command.find('@', at)) != std::string::npos; at += path.size())
    command.replace(at, 1, path);
  return path + " is " + content.what + (content.form == TextContent::Form::kKnown ? ", no text" : "") +
         ". HINT: " + (command.empty() ? "are these the files that you meant?" : command);
}

}  // namespace shoal
