#pragma once
// More of CRC-32C than crc32c() of common/bytes.h. Pure; thread-safe.
#include <cstdint>

namespace shoal {

// The sum of two pieces that follow each other, from the sum of each: whoever writes them apart need not read them
// again. Costs as much as the sum of a few hundred bytes.
std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

}  // namespace shoal
