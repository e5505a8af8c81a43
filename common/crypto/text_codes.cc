#include "common/crypto/text_codes.h"

namespace shoal {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<std::int8_t, 256> values_of(std::string_view alphabet) {
  std::array<std::int8_t, 256> values{};
  for (auto& value : values) value = -1;
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}
constexpr auto kBase64Values = values_of(kBase64);

Error bad_character(std::string_view text, std::size_t position) {
  return make_error(ErrorCode::kMalformed, "character " + std::to_string(position + 1) + " of " +
                                               std::to_string(text.size()) + " does not belong there");
}

}  // namespace

std::string base64url_of(ByteView bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (const std::uint8_t byte : bytes) {
    bits = bits << 8 | byte;
    count += 8;
    while (count >= 6) {
      count -= 6;
      text += kBase64[bits >> count & 63];
    }
  }
  if (count > 0) text += kBase64[bits << (6 - count) & 63];
  return text;
}

Result<std::vector<std::uint8_t>> parse_base64url(std::string_view text) {
  if (text.size() % 4 == 1) return make_error(ErrorCode::kMalformed, "a base64url text never has this length");
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int value = kBase64Values[static_cast<unsigned char>(text[i])];
    if (value < 0) return bad_character(text, i);
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<std::uint8_t>(bits >> count));
    }
  }
  if ((bits & ((1u << count) - 1)) != 0) return bad_character(text, text.size() - 1);
  return bytes;
}

std::string checked_base64url_of(ByteView bytes) {
  std::vector<std::uint8_t> all(bytes.begin(), bytes.end());
  const std::uint32_t sum = crc32c(bytes);
  for (int shift = 24; shift >= 0; shift -= 8) all.push_back(static_cast<std::uint8_t>(sum >> shift));
  return base64url_of(all);
}

Result<std::vector<std::uint8_t>> parse_checked_base64url(std::string_view text) {
  SHOAL_ASSIGN(auto bytes, parse_base64url(text));
  if (bytes.size() < 4) return make_error(ErrorCode::kMalformed, "the text is too short");
  std::uint32_t sum = 0;
  for (std::size_t i = bytes.size() - 4; i < bytes.size(); ++i) sum = sum << 8 | bytes[i];
  bytes.resize(bytes.size() - 4);
  if (crc32c(bytes) != sum) {
    return make_error(ErrorCode::kCorrupt, "the checksum does not fit: the text was mistyped or cut");
  }
  return bytes;
}

}  // namespace shoal
