#include "transport/mapping/map_words.h"

#include <arpa/inet.h>

#include <algorithm>
#include <vector>

namespace shoal {
namespace {

constexpr std::uint8_t kPcp = 2, kPmp = 0;                            // versions
constexpr std::uint8_t kMap = 1, kPmpAskAddress = 0, kPmpAskTcp = 2;  // opcodes
constexpr std::uint8_t kAnswerBit = 0x80, kTcp = 6;
constexpr std::size_t kPcpHead = 24, kPcpMapBytes = 60, kPmpHead = 8, kPmpAddressBytes = 12, kPmpMapBytes = 16;

// Integers in network order.
class Writer {
 public:
  template <class T>
  Writer& put(T number) {
    for (std::size_t byte = sizeof(T); byte-- > 0;) to_.push_back(static_cast<std::uint8_t>(number >> (8 * byte)));
    return *this;
  }
  template <class Array>
  Writer& all(const Array& bytes) {
    to_.insert(to_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Writer& zeros(std::size_t count) {
    to_.insert(to_.end(), count, 0);
    return *this;
  }
  Bytes take() { return Bytes::from_vector(std::move(to_)); }

 private:
  std::vector<std::uint8_t> to_;
};

// REQUIRES: at + sizeof(T) <= bytes.size().
template <class T>
T number_at(ByteView bytes, std::size_t at) {
  T number = 0;
  for (std::size_t byte = 0; byte < sizeof(T); ++byte) number = static_cast<T>(number << 8 | bytes[at + byte]);
  return number;
}
template <class Array>
void copy_at(ByteView bytes, std::size_t at, Array& to) {
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
}

IpBytes mapped_v4(const std::uint8_t* four) {
  IpBytes ip{};
  ip[10] = ip[11] = 0xff;
  std::copy_n(four, 4, ip.begin() + 12);
  return ip;
}
bool is_v4(const IpBytes& ip) {
  return std::all_of(ip.begin(), ip.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) && ip[10] == 0xff &&
         ip[11] == 0xff;
}

Error malformed(ByteView bytes) {
  return make_error(ErrorCode::kMalformed,
                    std::to_string(bytes.size()) + " bytes of a router that are no answer of PCP or NAT-PMP");
}

Result<MapAnswer> parse_pcp(ByteView bytes) {
  if (bytes.size() < kPcpHead || bytes.size() > kRouterWordMax || bytes.size() % 4 != 0 ||
      bytes[1] != (kAnswerBit | kMap))
    return malformed(bytes);
  MapAnswer answer{.word = MapWord::kPcpMap, .code = bytes[3], .lifetime_s = number_at<std::uint32_t>(bytes, 4)};
  if (bytes.size() < kPcpMapBytes) {
    if (answer.code == 0) return malformed(bytes);
    return answer;  // of an opcode or a version that it does not know
  }
  copy_at(bytes, kPcpHead, answer.nonce);
  if (bytes[36] != kTcp) return malformed(bytes);
  answer.inner = number_at<std::uint16_t>(bytes, 40);
  answer.outer = number_at<std::uint16_t>(bytes, 42);
  copy_at(bytes, 44, answer.host);
  return answer;
}

Result<MapAnswer> parse_pmp(ByteView bytes) {
  if (bytes.size() < kPmpHead || (bytes[1] & kAnswerBit) == 0) return malformed(bytes);
  MapAnswer answer{.word = MapWord::kPmpOther, .code = number_at<std::uint16_t>(bytes, 2)};
  const std::uint8_t opcode = bytes[1] & ~kAnswerBit;
  if (opcode == kPmpAskAddress && bytes.size() == kPmpAddressBytes) {
    answer.word = MapWord::kPmpAddress;
    answer.host = mapped_v4(bytes.data() + kPmpHead);
  } else if (opcode == kPmpAskTcp && bytes.size() == kPmpMapBytes) {
    answer.word = MapWord::kPmpMap;
    answer.inner = number_at<std::uint16_t>(bytes, 8);
    answer.outer = number_at<std::uint16_t>(bytes, 10);
    answer.lifetime_s = number_at<std::uint32_t>(bytes, 12);
  } else if (answer.code == 0) {
    return malformed(bytes);
  }
  return answer;
}

}  // namespace

Result<IpBytes> ip_bytes(const std::string& host) {
  IpBytes ip{};
  std::array<std::uint8_t, 4> four{};
  if (::inet_pton(AF_INET, host.c_str(), four.data()) == 1) return mapped_v4(four.data());
  if (::inet_pton(AF_INET6, host.c_str(), ip.data()) == 1) return ip;
  return make_error(ErrorCode::kInput, "\"" + host + "\" is no IP address");
}

std::string ip_text(const IpBytes& ip) {
  char text[INET6_ADDRSTRLEN] = {};
  const bool v4 = is_v4(ip);
  return ::inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? ip.data() + 12 : ip.data(), text, sizeof text) ? text : "";
}

Bytes pack_pcp_map(const MapRequest& request, const IpBytes& client, const MapNonce& nonce) {
  Writer to;
  to.put(kPcp).put(kMap).zeros(2).put(request.lifetime_s).all(client);
  to.all(nonce).put(kTcp).zeros(3).put(request.inner).put(request.outer);
  // No wish for an address: all zeros of the client's family (RFC 6887, section 11.1).
  return to.all(is_v4(client) ? mapped_v4(std::array<std::uint8_t, 4>{}.data()) : IpBytes{}).take();
}

Bytes pack_pmp_map(const MapRequest& request) {
  return Writer()
      .put(kPmp)
      .put(kPmpAskTcp)
      .zeros(2)
      .put(request.inner)
      .put(request.outer)
      .put(request.lifetime_s)
      .take();
}

Bytes pack_pmp_address() { return Writer().put(kPmp).put(kPmpAskAddress).take(); }

Result<MapAnswer> parse_map_answer(ByteView bytes) {
  if (bytes.size() >= 2 && bytes[0] == kPcp) return parse_pcp(bytes);
  if (bytes.size() >= 2 && bytes[0] == kPmp) return parse_pmp(bytes);
  return malformed(bytes);
}

bool lacks_pcp(const MapAnswer& answer) {
  constexpr std::uint16_t kUnsupportedVersion = 1;  // in both
  return answer.code == kUnsupportedVersion;
}

std::string why_not(const MapAnswer& answer) {
  const bool pcp = answer.word == MapWord::kPcpMap;
  const std::string code = std::string(pcp ? " (PCP" : " (NAT-PMP") + " code " + std::to_string(answer.code) + ")";
  if (answer.code == 2) return "the router refuses to map ports" + code;
  if (pcp ? answer.code == 7 : answer.code == 3) return "the router has no address outside" + code;
  if (pcp ? answer.code == 8 || answer.code == 10 : answer.code == 4) return "the router has no port left" + code;
  if (pcp && answer.code == 12) return "another router stands in front of this one" + code;
  return "the router cannot map ports" + code;
}

}  // namespace shoal
