#pragma once
// A rising list of serials as bytes: what a round names, for which runs of consecutive numbers are the rule. Pure
// functions. Thread: any.
//
// For each run of consecutive serials two numbers: its distance from the end of the run before (from 0 for the first)
// and its length minus one; each as LEB128 (7 bits a byte, the low ones first, bit 7 says that more follow, no byte
// more than needed). 51 200 serials without a gap are 4 bytes; without two neighbours, and gaps below 128, two bytes
// each.
#include <cstdint>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "transport/limits.h"

namespace shoal {

// ERRORS: kMalformed (not strictly rising), kTooLarge (limits::kSerialsMax, limits::kSerialBytesMax).
Result<std::vector<std::uint8_t>> pack_serials(const std::vector<std::uint64_t>& serials);
// ERRORS: kMalformed (cut short, overlong, above 64 bits, runs that touch), kTooLarge; no memory is taken for more than
// `most`.
Result<std::vector<std::uint64_t>> parse_serials(ByteView bytes, std::size_t most = limits::kSerialsMax);

}  // namespace shoal
