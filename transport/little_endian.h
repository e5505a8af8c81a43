#pragma once
// Fixed-width little-endian integers in byte strings. REQUIRES: the bytes are there; callers check lengths first.
#include <cstdint>
#include <vector>

#include "common/bytes.h"

namespace shoal {

inline void put_u16(std::uint8_t* to, std::uint16_t value) {
  for (int i = 0; i < 2; ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * i));
}
inline void put_u32(std::uint8_t* to, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * i));
}
inline void put_u64(std::uint8_t* to, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * i));
}
inline void append_u16(std::vector<std::uint8_t>& to, std::uint16_t value) {
  to.resize(to.size() + 2);
  put_u16(to.data() + to.size() - 2, value);
}
inline void append_u32(std::vector<std::uint8_t>& to, std::uint32_t value) {
  to.resize(to.size() + 4);
  put_u32(to.data() + to.size() - 4, value);
}
inline void append_u64(std::vector<std::uint8_t>& to, std::uint64_t value) {
  to.resize(to.size() + 8);
  put_u64(to.data() + to.size() - 8, value);
}
inline std::uint16_t get_u16(ByteView from, std::size_t at) {
  return static_cast<std::uint16_t>(from[at] | from[at + 1] << 8);
}
inline std::uint32_t get_u32(ByteView from, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | from[at + i];
  return value;
}
inline std::uint64_t get_u64(ByteView from, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | from[at + i];
  return value;
}

}  // namespace shoal
