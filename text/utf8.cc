#include "text/utf8.h"

#include <cstring>

namespace shoal {
namespace {

// What stands at a place: a character, or a piece that is none.
struct Sequence {
  std::size_t bytes;
  bool valid;
};

Sequence sequence_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const std::size_t bytes = character_bytes(text[at]);
  // The second byte keeps out long forms, surrogates, and what lies beyond U+10FFFF.
  unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < bytes; ++i) {
    if (at + i >= text.size() || byte(at + i) < low || byte(at + i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {bytes, true};
}

// The first place from `at` on that begins no valid character, or the end.
std::size_t valid_until(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    std::uint64_t eight = 0;
    while (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080u) != 0) break;
      at += sizeof eight;
    }
    if (at == text.size()) break;
    const Sequence sequence = sequence_at(text, at);
    if (!sequence.valid) return at;
    at += sequence.bytes;
  }
  return at;
}

}  // namespace

bool is_utf8(std::string_view bytes) { return valid_until(bytes, 0) == bytes.size(); }

std::string_view whole_characters(std::string_view bytes) {
  for (std::size_t behind = 1; behind <= 3 && behind <= bytes.size(); ++behind) {
    const std::size_t at = bytes.size() - behind;
    const auto byte = static_cast<unsigned char>(bytes[at]);
    if (byte < 0x80) break;
    if (byte >= 0xC0) return character_bytes(bytes[at]) > behind ? bytes.substr(0, at) : bytes;
  }
  return bytes;
}

std::string with_replacements(std::string_view bytes, std::uint64_t* count) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 8);
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t until = valid_until(bytes, at);
    text.append(bytes.substr(at, until - at));
    if (until == bytes.size()) break;
    text.append(kReplacement);
    if (count != nullptr) ++*count;
    at = until + sequence_at(bytes, until).bytes;
  }
  return text;
}

char32_t character_at(std::string_view text, std::size_t at) {
  const std::size_t bytes = character_bytes(text[at]);
  const auto lead = static_cast<unsigned char>(text[at]);
  if (bytes == 1) return lead;
  char32_t character = lead & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i)
    character = character << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
  return character;
}

void append_character(std::string& text, char32_t character) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xC0 | character >> 6);
    put(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    put(0xE0 | character >> 12);
    put(0x80 | (character >> 6 & 0x3F));
    put(0x80 | (character & 0x3F));
  } else {
    put(0xF0 | character >> 18);
    put(0x80 | (character >> 12 & 0x3F));
    put(0x80 | (character >> 6 & 0x3F));
    put(0x80 | (character & 0x3F));
  }
}

}  // namespace shoal
