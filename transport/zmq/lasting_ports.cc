#include "transport/zmq/lasting_ports.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <string>

#include "common/os/posix_file.h"

namespace shoal {
namespace {

constexpr char kRangeFile[] = "/proc/sys/net/ipv4/ip_local_port_range";
constexpr std::uint16_t kLowest = 10'000, kHighest = 65'534;
constexpr std::size_t kCandidatesMin = 256;

std::vector<std::uint16_t> pairs_outside(PortRange range) {
  std::vector<std::uint16_t> pairs;
  for (std::uint32_t port = kLowest; port <= kHighest; port += 2) {
    const auto first = static_cast<std::uint16_t>(port), second = static_cast<std::uint16_t>(port + 1);
    if (!range.holds(first) && !range.holds(second)) pairs.push_back(first);
  }
  return pairs;
}

// 0, or why a listener on every address of the family could not have the port. libzmq's listeners have SO_REUSEADDR as
// well, so connections of an earlier listener that are over do not count.
int try_to_bind(int family, int type, std::uint16_t port) {
  const Descriptor probe(::socket(family, type | SOCK_CLOEXEC, 0));
  if (probe.get() < 0) return errno;
  const int yes = 1, no = 0;
  if (type == SOCK_STREAM) ::setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in6 v6 = {};
  sockaddr_in v4 = {};
  v6.sin6_family = AF_INET6;
  v4.sin_family = AF_INET;
  v6.sin6_port = v4.sin_port = htons(port);
  if (family == AF_INET6) ::setsockopt(probe.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  const int bound = family == AF_INET6 ? ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&v6), sizeof v6)
                                       : ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  return bound == 0 ? 0 : errno;
}

bool is_free(int type, std::uint16_t port) {
  const int failure = try_to_bind(AF_INET6, type, port);  // both families at once
  if (failure == 0 || failure == EADDRINUSE) return failure == 0;
  return try_to_bind(AF_INET, type, port) == 0;  // a machine without IPv6
}

}  // namespace

Result<PortRange> parse_port_range(std::string_view text) {
  const auto refuse = [&] {
    return make_error(ErrorCode::kMalformed, "\"" + std::string(text.substr(0, 64)) + "\" is no range of ports");
  };
  PortRange range;
  std::string_view rest = text;
  for (std::uint16_t* port : {&range.first, &range.last}) {
    const std::size_t begin = rest.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return refuse();
    rest.remove_prefix(begin);
    const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), *port);
    if (failure != std::errc() || *port == 0) return refuse();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (port == &range.first && !rest.starts_with(' ') && !rest.starts_with('\t')) return refuse();
  }
  if (rest.find_first_not_of(" \t\n") != std::string_view::npos || range.first > range.last) return refuse();
  return range;
}

PortRange ephemeral_ports() {
  std::ifstream file(kRangeFile);
  std::string line;
  std::getline(file, line);
  const auto range = parse_port_range(line);
  return range.ok() ? *range : kLinuxEphemeralPorts;
}

std::vector<std::uint16_t> port_candidates(PortRange ephemeral) {
  std::vector<std::uint16_t> pairs = pairs_outside(ephemeral);
  return pairs.size() >= kCandidatesMin ? pairs : pairs_outside({});
}

bool port_pair_is_free(std::uint16_t port) {
  return is_free(SOCK_STREAM, port) && is_free(SOCK_STREAM, static_cast<std::uint16_t>(port + 1)) &&
         is_free(SOCK_DGRAM, port);
}

Result<std::uint16_t> draw_port_pair(Rng& rng, PortRange ephemeral) {
  const std::vector<std::uint16_t> candidates = port_candidates(ephemeral);
  for (int draw = 0; draw < kPortDrawsMax; ++draw) {
    const std::uint16_t port = candidates[rng.below(candidates.size())];
    if (port_pair_is_free(port)) return port;
  }
  return make_error(ErrorCode::kBusy, "no two free ports in a row were found in " + std::to_string(kPortDrawsMax) +
                                          " draws from " + std::to_string(kLowest) + " up");
}

}  // namespace shoal
