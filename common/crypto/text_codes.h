#pragma once
// Bytes as text: base64url (RFC 4648 section 5, no padding), the same with a CRC-32C behind it so that a typo is called
// a typo. Thread: any. Decoding is strict: one text for one byte string.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"

namespace shoal {

std::string base64url_of(ByteView bytes);
// ERRORS: kMalformed (a character outside the alphabet, an impossible length, non-zero spare bits).
Result<std::vector<std::uint8_t>> parse_base64url(std::string_view text);

// base64url of bytes + their CRC-32C (4 bytes, big-endian).
std::string checked_base64url_of(ByteView bytes);
// ERRORS: kMalformed (as above, or too short), kCorrupt (the sum does not fit: mistyped or cut).
Result<std::vector<std::uint8_t>> parse_checked_base64url(std::string_view text);

}  // namespace shoal
