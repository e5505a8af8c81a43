#pragma once
// How byte-level BPE writes bytes as characters in tokenizer.json (Radford et al. 2019, the released GPT-2 encoder):
// the printable bytes of Latin-1 are themselves, the other 68 are U+0100 and on, in their order. So a space is U+0120.
// Pure functions; thread: any.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shoal {

char32_t character_of_byte(std::uint8_t byte);
std::string characters_of_bytes(std::string_view bytes);
// Nothing when a character stands for no byte. REQUIRES: valid UTF-8.
std::optional<std::string> bytes_of_characters(std::string_view text);

}  // namespace shoal
