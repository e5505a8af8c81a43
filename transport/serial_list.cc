#include "transport/serial_list.h"

#include <limits>
#include <string>

#include "transport/limits.h"

namespace shoal {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

Error malformed(const std::string& what) { return make_error(ErrorCode::kMalformed, "a list of serials " + what); }
Error too_large() {
  return make_error(ErrorCode::kTooLarge, "a list of more than " + std::to_string(limits::kSerialsMax) +
                                              " serials or " + std::to_string(limits::kSerialBytesMax) + " bytes");
}

void put(std::vector<std::uint8_t>& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
  bytes.push_back(static_cast<std::uint8_t>(value));
}

Result<std::uint64_t> take(ByteView bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (at == bytes.size()) return malformed("is cut short");
    const std::uint8_t byte = bytes[at++];
    const std::uint64_t part = byte & 0x7f;
    if (shift > 63 || (part << shift) >> shift != part) return malformed("holds a number above 64 bits");
    value |= part << shift;
    if ((byte & 0x80) != 0) continue;
    if (byte == 0 && shift > 0) return malformed("holds an overlong number");
    return value;
  }
}

}  // namespace

Result<std::vector<std::uint8_t>> pack_serials(const std::vector<std::uint64_t>& serials) {
  if (serials.size() > limits::kSerialsMax) return too_large();
  std::vector<std::uint8_t> bytes;
  std::uint64_t end = 0;  // behind the run before
  for (std::size_t first = 0; first < serials.size();) {
    std::size_t next = first + 1;
    while (next < serials.size() && serials[next - 1] < kMax && serials[next] == serials[next - 1] + 1) ++next;
    if (next < serials.size() && serials[next] <= serials[next - 1]) return malformed("does not rise");
    put(bytes, serials[first] - end);
    put(bytes, next - first - 1);
    end = serials[next - 1] + 1;  // wraps only behind the last possible run
    first = next;
  }
  if (bytes.size() > limits::kSerialBytesMax) return too_large();
  return bytes;
}

Result<std::vector<std::uint64_t>> parse_serials(ByteView bytes, std::size_t most) {
  if (bytes.size() > limits::kSerialBytesMax) return too_large();
  std::vector<std::uint64_t> serials;
  std::uint64_t end = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    SHOAL_ASSIGN(const std::uint64_t distance, take(bytes, at));
    SHOAL_ASSIGN(const std::uint64_t more, take(bytes, at));
    if (!serials.empty() && (distance == 0 || end == 0)) return malformed("does not rise, or its runs touch");
    if (most == serials.size() || more >= most - serials.size()) return too_large();
    if (distance > kMax - end || more > kMax - end - distance) return malformed("holds a number above 64 bits");
    const std::uint64_t first = end + distance;
    for (std::uint64_t i = 0; i <= more; ++i) serials.push_back(first + i);
    end = first + more + 1;
  }
  return serials;
}

}  // namespace shoal
