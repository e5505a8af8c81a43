#pragma once
// Has the router of this machine forward ports to it while this object lives: one talk (map_talk.h) for IPv4 behind a
// private address, one for the firewall in front of a public IPv6 address. Nobody has to have such a router: what it
// mapped is a hope that a dial from outside proves, and a kill of the process leaves it for kLifetimeSeconds.
//
// Thread: all calls on the loop; the sockets belong to a thread of its own, which waits in poll.   Borrows: the loop.
// Bounds: two sockets; kPortsMax ports; answers of kRouterWordMax bytes, from the router alone.
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/crypto/sign.h"
#include "common/event_loop.h"
#include "common/host_port.h"
#include "common/lifetime.h"
#include "transport/mapping/map_talk.h"

namespace shoal {

struct PortMappingOptions {
  static constexpr std::size_t kPortsMax = 4;
  std::vector<std::uint16_t> ports;     // empty: no router is asked
  std::vector<std::string> addresses;   // that others are told ("IP:port"): which families there is a talk for
  std::uint64_t secret = 0;             // of the process's key (mapping_secret)
  std::optional<HostPort> router = {};  // for tests: that one, of an IPv4 network
};

class PortMapping {
 public:
  static constexpr Duration kAskAgain = 600s, kAskAgainAfterLoss = 30s;
  static constexpr Duration kFarewellMax = 400ms;  // for the destructor

  // `changed` runs on the loop when what is mapped is another than it was.
  PortMapping(EventLoop& loop, PortMappingOptions options, std::function<void()> changed);
  ~PortMapping();
  PortMapping(const PortMapping&) = delete;
  PortMapping& operator=(const PortMapping&) = delete;

  // What the routers map now, or why nothing; empty: no router is asked.
  std::vector<Mapping> now() const;
  // Blocks until every router said something, at most for `patience`.
  std::vector<Mapping> await(Duration patience) const;

 private:
  class Thread;
  Lifetime lifetime_;
  const std::unique_ptr<Thread> thread_;
};

std::uint64_t mapping_secret(const KeyPair& key);
// The ports of a process that listens on `port` and the next one; empty where there is no next one.
std::vector<std::uint16_t> lane_ports(std::uint16_t port);
// Those that a router maps, and behind them `addresses` that are none of these.
std::vector<std::string> beside(const std::vector<std::string>& mapped, const std::vector<std::string>& addresses);
// Where others dial, by these mappings, the process that listens on `port` (and on the next one with its bulk lane).
std::vector<std::string> mapped_addresses(const std::vector<Mapping>& mappings, std::uint16_t port);
// "mapped by PCP", "the router does not answer"; empty: no router is asked, or nothing is known yet.
std::string mapping_text(const std::vector<Mapping>& mappings);

}  // namespace shoal
