#include "text/byte_map.h"

#include <array>

#include "text/utf8.h"

namespace shoal {
namespace {

struct ByteMap {
  std::array<char32_t, 256> characters{};
  std::array<std::int16_t, 512> bytes{};  // by character, -1 where it stands for none
};

const ByteMap& byte_map() {
  static const ByteMap map = [] {
    ByteMap made;
    made.bytes.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
      const char32_t character = printable ? byte : next++;
      made.characters[byte] = character;
      made.bytes[character] = static_cast<std::int16_t>(byte);
    }
    return made;
  }();
  return map;
}

}  // namespace

char32_t character_of_byte(std::uint8_t byte) { return byte_map().characters[byte]; }

std::string characters_of_bytes(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_character(text, character_of_byte(static_cast<std::uint8_t>(byte)));
  return text;
}

std::optional<std::string> bytes_of_characters(std::string_view text) {
  const ByteMap& map = byte_map();
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); at += character_bytes(text[at])) {
    const char32_t character = character_at(text, at);
    if (character >= map.bytes.size() || map.bytes[character] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(static_cast<std::uint8_t>(map.bytes[character])));
  }
  return bytes;
}

}  // namespace shoal
