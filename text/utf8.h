#pragma once
// Bytes that should be UTF-8. Pure functions; thread: any.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shoal {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_utf8(std::string_view bytes);
// Without what may be the begin of a character whose rest is yet to come.
std::string_view whole_characters(std::string_view bytes);
// One U+FFFD for each longest piece that begins a character without ending it, and for each byte that begins none
// (Unicode 15, 3.9, "maximal subpart"): what Python's errors="replace" and Rust's from_utf8_lossy do. `count` grows by
// how many.
std::string with_replacements(std::string_view bytes, std::uint64_t* count = nullptr);

// How many bytes the character has that begins with `lead`. REQUIRES: valid UTF-8.
inline std::size_t character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}
// The character at `at`. REQUIRES: valid UTF-8, at < text.size().
char32_t character_at(std::string_view text, std::size_t at);
// UTF-16: the unit that begins `bytes`, which has two at least; halves of a pair, and what they are together.
inline char32_t utf16_unit(std::string_view bytes, bool big) {
  const auto first = static_cast<unsigned char>(bytes[0]), second = static_cast<unsigned char>(bytes[1]);
  return static_cast<char32_t>(big ? first << 8 | second : second << 8 | first);
}
inline bool is_first_half(char32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
inline bool is_second_half(char32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }
inline char32_t joined_halves(char32_t first, char32_t second) {
  return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
}

void append_character(std::string& text, char32_t character);

}  // namespace shoal
