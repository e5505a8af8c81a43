#pragma once
// Fixed-width little-endian numbers in byte strings: at a place (put_le, get_le), behind each other (ByteWriter,
// ByteReader). Values: integers, enumerations of integers are the caller's to cast, float and double by their bits.
// Thread: any; each writer and reader has one owner.
#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "common/check.h"

namespace shoal {

template <class T>
concept FixedWidth = std::integral<T> || std::floating_point<T>;

// REQUIRES: sizeof(T) bytes from `to` on.
template <FixedWidth T>
void put_le(std::uint8_t* to, T value) {
  std::uint64_t bits = 0;
  if constexpr (std::same_as<T, float>)
    bits = std::bit_cast<std::uint32_t>(value);
  else if constexpr (std::same_as<T, double>)
    bits = std::bit_cast<std::uint64_t>(value);
  else
    bits = static_cast<std::uint64_t>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::uint8_t>(bits >> (8 * i));
}

// REQUIRES: sizeof(T) bytes from `from` on.
template <FixedWidth T>
T get_le(const std::uint8_t* from) {
  std::uint64_t bits = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) bits = bits << 8 | from[i];
  if constexpr (std::same_as<T, float>)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  else if constexpr (std::same_as<T, double>)
    return std::bit_cast<double>(bits);
  else
    return static_cast<T>(bits);
}

// REQUIRES: at + sizeof(T) <= from.size().
template <FixedWidth T>
T get_le(ByteView from, std::size_t at) {
  return get_le<T>(from.data() + at);
}

template <FixedWidth T>
void append_le(std::vector<std::uint8_t>& to, T value) {
  to.resize(to.size() + sizeof(T));
  put_le(to.data() + to.size() - sizeof(T), value);
}

class ByteWriter {
 public:
  template <FixedWidth T>
  void put(T value) {
    append_le(bytes_, value);
  }
  void bytes(ByteView value) { bytes_.insert(bytes_.end(), value.begin(), value.end()); }
  // u16 length in front. REQUIRES: at most 65535 bytes.
  void text(std::string_view value) {
    SHOAL_CHECK_LE(value.size(), std::size_t{UINT16_MAX});
    put(static_cast<std::uint16_t>(value.size()));
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  ByteView view() const { return bytes_; }
  Bytes take() && { return Bytes::from_vector(std::move(bytes_)); }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Never reads behind the end: what is not there is zero or empty, and bad() says so from then on.
class ByteReader {
 public:
  explicit ByteReader(ByteView bytes) : bytes_(bytes) {}

  template <FixedWidth T>
  T get() {
    const ByteView raw = bytes(sizeof(T));
    return raw.empty() ? T{} : get_le<T>(raw.data());
  }
  ByteView bytes(std::size_t size) {
    if (size > bytes_.size() - at_) {
      bad_ = true;
      at_ = bytes_.size();
      return {};
    }
    return bytes_.subspan(std::exchange(at_, at_ + size), size);
  }
  std::string text() {
    const ByteView raw = bytes(get<std::uint16_t>());
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  ByteView rest() { return bytes(bytes_.size() - at_); }
  bool bad() const { return bad_; }
  bool whole() const { return !bad_ && at_ == bytes_.size(); }

 private:
  ByteView bytes_;
  std::size_t at_ = 0;
  bool bad_ = false;
};

}  // namespace shoal
