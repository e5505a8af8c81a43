#include "common/os/gateway.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <vector>

namespace shoal {
namespace {

constexpr std::uint64_t kReject = 0x0200;  // of a route's flags (linux/route.h)
constexpr char kZeros[] = "00000000000000000000000000000000";

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> fields_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

std::uint64_t number(const std::string& text, int base) { return std::strtoull(text.c_str(), nullptr, base); }

// The best line whose gateway `gateway_in` finds; `metric_in` reads its metric.
template <class Gateway, class Metric>
std::string best(const std::string& table, std::size_t fields, Gateway gateway_in, Metric metric_in) {
  std::istringstream lines(table);
  std::string gateway;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> field = fields_of(line);
    if (field.size() < fields) continue;
    const std::string found = gateway_in(field);
    if (found.empty() || metric_in(field) >= least) continue;
    gateway = found;
    least = metric_in(field);
  }
  return gateway;
}

}  // namespace

// Interface, destination, gateway, flags, counts, metric, mask ...: addresses as hexadecimal numbers of this machine.
std::string gateway_in_v4_routes(const std::string& table) {
  const auto gateway = [](const std::vector<std::string>& field) -> std::string {
    const std::uint64_t flags = number(field[3], 16);
    if (field[1] != "00000000" || field[7] != "00000000" || (flags & RTF_UP) == 0 || (flags & RTF_GATEWAY) == 0)
      return "";
    const in_addr address{static_cast<in_addr_t>(number(field[2], 16))};
    char text[INET_ADDRSTRLEN] = {};
    return ::inet_ntop(AF_INET, &address, text, sizeof text) ? text : "";
  };
  return best(table, 8, gateway, [](const auto& field) { return number(field[6], 10); });
}

// Destination, its prefix, source, its prefix, gateway, metric, counts, flags, interface: addresses as 32 digits.
std::string gateway_in_v6_routes(const std::string& table) {
  const auto gateway = [](const std::vector<std::string>& field) -> std::string {
    const std::uint64_t flags = number(field[8], 16);
    if (field[0] != kZeros || field[1] != "00" || field[4] == kZeros || field[4].size() != 32 ||
        (flags & RTF_UP) == 0 || (flags & kReject) != 0)
      return "";
    in6_addr address = {};
    for (std::size_t byte = 0; byte < 16; ++byte)
      address.s6_addr[byte] = static_cast<std::uint8_t>(number(field[4].substr(2 * byte, 2), 16));
    char text[INET6_ADDRSTRLEN] = {};
    if (!::inet_ntop(AF_INET6, &address, text, sizeof text)) return "";
    return text + (IN6_IS_ADDR_LINKLOCAL(&address) ? "%" + field[9] : "");
  };
  return best(table, 10, gateway, [](const auto& field) { return number(field[5], 16); });
}

std::string gateway_of(IpFamily family) {
  return family == IpFamily::kV4 ? gateway_in_v4_routes(text_of("/proc/net/route"))
                                 : gateway_in_v6_routes(text_of("/proc/net/ipv6_route"));
}

}  // namespace shoal
