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
void append_character(std::string& text, char32_t character);

}  // namespace shoal
