#include "common/crc32c.h"

#include <array>

#include "common/bulk_bytes.h"
#include "common/bytes.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

namespace shoal {
namespace {

// Polynomials over GF(2) below degree 32, reflected: bit 31 is the coefficient of x^0.
constexpr std::uint32_t kCastagnoli = 0x82f63b78u;
constexpr std::uint32_t kOne = 1u << 31;

constexpr std::uint32_t times_x(std::uint32_t a) { return (a & 1u) ? a >> 1 ^ kCastagnoli : a >> 1; }

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (std::uint32_t term = kOne; term != 0; term >>= 1, b = times_x(b)) sum ^= (a & term) ? b : 0;
  return sum;
}

constexpr std::uint32_t power_of_x(std::uint64_t exponent) {
  std::uint32_t power = kOne;
  for (std::uint32_t square = times_x(kOne); exponent != 0; exponent >>= 1, square = product(square, square)) {
    if (exponent & 1u) power = product(power, square);
  }
  return power;
}

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t sum = i;
    for (int bit = 0; bit < 8; ++bit) sum = times_x(sum);
    table[i] = sum;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

std::uint32_t crc32c_table(ByteView bytes, std::uint32_t sum) {
  for (const std::uint8_t byte : bytes) sum = sum >> 8 ^ kTable[(sum ^ byte) & 0xffu];
  return sum;
}

#if defined(__x86_64__)
std::uint64_t word_at(const std::uint8_t* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, 8);
  return word;
}

// The instruction takes three cycles and one begins each cycle. So three lanes of a block are summed beside each other,
// as in Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction" (Intel, 2011), and the first
// two moved to their places: times x^(8 * the bytes behind them). The carry-less product of two reflected polynomials
// stands one bit low, and the instruction that reduces it multiplies by x^32: hence 33 less.
template <std::size_t kLaneBytes>
__attribute__((target("sse4.2,pclmul"))) std::uint32_t sum_blocks(ByteView& bytes, std::uint32_t sum) {
  constexpr std::uint64_t kTwoBehind = power_of_x(2 * 8 * kLaneBytes - 33);
  constexpr std::uint64_t kOneBehind = power_of_x(8 * kLaneBytes - 33);
  const std::uint8_t* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 3 * kLaneBytes; at += 3 * kLaneBytes, left -= 3 * kLaneBytes) {
    std::uint64_t first = sum, second = 0, third = 0;
    for (std::size_t i = 0; i < kLaneBytes; i += 8) {
      first = _mm_crc32_u64(first, word_at(at + i));
      second = _mm_crc32_u64(second, word_at(at + kLaneBytes + i));
      third = _mm_crc32_u64(third, word_at(at + 2 * kLaneBytes + i));
    }
    const __m128i lanes = _mm_set_epi64x(static_cast<long long>(second), static_cast<long long>(first));
    const __m128i places = _mm_set_epi64x(static_cast<long long>(kOneBehind), static_cast<long long>(kTwoBehind));
    const __m128i moved =
        _mm_xor_si128(_mm_clmulepi64_si128(lanes, places, 0x00), _mm_clmulepi64_si128(lanes, places, 0x11));
    const auto wide = static_cast<std::uint64_t>(_mm_cvtsi128_si64(moved));
    sum = static_cast<std::uint32_t>(_mm_crc32_u64(0, wide) ^ third);
  }
  bytes = bytes.last(left);
  return sum;
}

__attribute__((target("sse4.2,pclmul"))) std::uint32_t crc32c_sse42(ByteView bytes, std::uint32_t sum) {
  sum = sum_blocks<2048>(bytes, sum);
  sum = sum_blocks<128>(bytes, sum);
  std::uint64_t wide = sum;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) wide = _mm_crc32_u64(wide, word_at(bytes.data() + i));
  sum = static_cast<std::uint32_t>(wide);
  for (; i < bytes.size(); ++i) sum = _mm_crc32_u8(sum, bytes[i]);
  return sum;
}
#endif

}  // namespace

std::uint32_t crc32c(ByteView bytes, std::uint32_t seed) {
  note_bulk(bytes.size());
#if defined(__x86_64__)
  static const bool hardware = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  if (hardware) return ~crc32c_sse42(bytes, ~seed);
#endif
  return crc32c_portable(bytes, seed);
}

std::uint32_t crc32c_portable(ByteView bytes, std::uint32_t seed) { return ~crc32c_table(bytes, ~seed); }

std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
  return product(first, power_of_x(8 * second_bytes)) ^ second;
}

}  // namespace shoal
