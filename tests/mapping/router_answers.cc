#include "tests/mapping/router_answers.h"

#include <arpa/inet.h>

namespace shoal::test {
namespace {

void put16(Datagram& to, std::uint32_t number) {
  to.push_back(static_cast<std::uint8_t>(number >> 8));
  to.push_back(static_cast<std::uint8_t>(number));
}
void put32(Datagram& to, std::uint32_t number) {
  put16(to, number >> 16);
  put16(to, number & 0xffff);
}
void put_host(Datagram& to, const std::string& host, bool as_v6) {
  std::uint8_t ip[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool v4 = ::inet_pton(AF_INET, host.c_str(), ip + 12) == 1;
  if (!v4) ::inet_pton(AF_INET6, host.c_str(), ip);
  to.insert(to.end(), as_v6 ? ip : ip + 12, ip + 16);
}
std::uint32_t number(ByteView bytes, std::size_t at, std::size_t size) {
  std::uint32_t result = 0;
  for (std::size_t i = 0; i < size; ++i) result = result << 8 | bytes[at + i];
  return result;
}
constexpr std::uint32_t kEpoch = 1234;

}  // namespace

Datagram pcp_answer(ByteView request, std::uint8_t code, std::uint16_t outer, const std::string& host,
                    std::uint32_t lifetime_s) {
  Datagram to = {2, 0x81, 0, code};
  put32(to, lifetime_s);
  put32(to, kEpoch);
  to.insert(to.end(), 12, 0);
  to.insert(to.end(), request.begin() + 24, request.begin() + 42);  // nonce, protocol, zeros, inner port
  put16(to, outer);
  put_host(to, host, true);
  return to;
}

Datagram pmp_version_answer() {
  Datagram to = {0, 0x80, 0, 1};
  put32(to, kEpoch);
  return to;
}

Datagram pmp_answer(ByteView request, std::uint16_t code, std::uint16_t outer, std::uint32_t lifetime_s) {
  Datagram to = {0, 0x82};
  put16(to, code);
  put32(to, kEpoch);
  put16(to, inner_port_of(request));
  put16(to, outer);
  put32(to, lifetime_s);
  return to;
}

Datagram pmp_address_answer(const std::string& host) {
  Datagram to = {0, 0x80, 0, 0};
  put32(to, kEpoch);
  put_host(to, host, false);
  return to;
}

bool is_pcp_map(ByteView request) { return request.size() == 60 && request[0] == 2 && request[1] == 1; }
bool is_pmp_map(ByteView request) { return request.size() == 12 && request[0] == 0 && request[1] == 2; }
bool is_pmp_address(ByteView request) { return request.size() == 2 && request[0] == 0 && request[1] == 0; }
std::uint16_t inner_port_of(ByteView request) {
  return static_cast<std::uint16_t>(number(request, is_pcp_map(request) ? 40 : 4, 2));
}
std::uint32_t lifetime_of(ByteView request) { return number(request, is_pcp_map(request) ? 4 : 8, 4); }

}  // namespace shoal::test
