#pragma once
// A 64-bit word as text. Thread: any.
#include <cstdint>
#include <string>

namespace shoal {

std::string hex_of_word(std::uint64_t word);  // 16 lower-case hex digits, the most significant first

}  // namespace shoal
