#include "common/ids.h"

#include "common/hex.h"

namespace shoal {
namespace {

// By byte, since the branches of a comparison cost more than the rest of a parse; kNone: no digit.
constexpr std::uint8_t kNone = 0xff;
constexpr auto kDigits = [] {
  std::array<std::uint8_t, 256> digits;
  digits.fill(kNone);
  for (std::uint8_t i = 0; i < 10; ++i) digits['0' + i] = i;
  for (std::uint8_t i = 0; i < 6; ++i) digits['a' + i] = digits['A' + i] = static_cast<std::uint8_t>(10 + i);
  return digits;
}();
std::uint8_t digit_of(char c) { return kDigits[static_cast<unsigned char>(c)]; }

}  // namespace

std::string hex_of_word(std::uint64_t word) {
  std::array<std::uint8_t, 8> bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(word >> (56 - 8 * i));
  return hex_of(bytes.data(), bytes.size());
}

Session Session::of(const PeerId& peer, std::uint64_t incarnation) {
  std::uint64_t tag = 0;
  for (std::size_t i = 0; i < 8; ++i) tag = tag << 8 | peer.bytes[i];
  return {tag, incarnation};
}

std::string hex_of(const std::uint8_t* bytes, std::size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(size * 2, '0');
  for (std::size_t i = 0; i < size; ++i) {
    text[2 * i] = kDigits[bytes[i] >> 4];
    text[2 * i + 1] = kDigits[bytes[i] & 15];
  }
  return text;
}

// The peer's 8 digits as short_name of its key gives them, then 4 of the incarnation.
std::string short_name(const Session& session) {
  return hex_of_word(session.peer_tag).substr(0, 8) + "." + hex_of_word(session.incarnation).substr(0, 4);
}

Result<std::array<std::uint8_t, 32>> parse_hex32(std::string_view text) {
  if (text.size() != 64) {
    return make_error(ErrorCode::kMalformed, "a key has 64 hex digits, this one has " + std::to_string(text.size()));
  }
  std::array<std::uint8_t, 32> bytes;
  for (std::size_t i = 0; i < 32; ++i) {
    const std::uint8_t high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
    if ((high | low) == kNone) {
      return make_error(ErrorCode::kMalformed, "a key has only hex digits; see position " + std::to_string(2 * i));
    }
    bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return bytes;
}

std::ostream& operator<<(std::ostream& out, const Session& session) {
  return out << hex_of_word(session.peer_tag) << '.' << hex_of_word(session.incarnation);
}
std::ostream& operator<<(std::ostream& out, const EntryName& entry_name) {
  return out << entry_name.session << '#' << entry_name.serial;
}
std::ostream& operator<<(std::ostream& out, const Lease& lease) { return out << lease.session << '~' << lease.serial; }
std::ostream& operator<<(std::ostream& out, const MicrobatchId& id) {
  return out << hex_of_word(id.trainer) << ':' << id.serial;
}

}  // namespace shoal
