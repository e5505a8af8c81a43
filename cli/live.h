#pragma once
// What the commands share that link to a run: which addresses others are told, and the way into the DHT.
#include <memory>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "common/storage.h"
#include "dht/dht_directory.h"
#include "runtime/config/ticket.h"

namespace shoal {

// "host:port" with the host's IP address in place of its name: the wire dials no names, and others would ask their own
// name servers. Blocks while the name server is asked. `v6`: an IPv6 address will do. ERRORS: kInput.
Result<std::string> resolved_address(const std::string& address, bool v6);

// What others are told to dial: at most three, "IP:port". `listening`: where the wire listens, with its port. In this
// order: `advertise`
// ("host" or "host:port"), the host that is listened on when it is one, our side of the routes to `toward` (addresses;
// each side once, loopback last), the addresses of all interfaces but loopback, loopback. ERRORS: kInput (an address
// that is none, or that nobody can dial: 0.0.0.0; a name that does not resolve).
Result<std::vector<std::string>> own_addresses(const std::string& listening, const std::vector<std::string>& advertise,
                                               const std::vector<std::string>& toward);
// The ticket's addresses as IP addresses; a warning for one that does not resolve. ERRORS: kInput: none of them does.
Result<std::vector<std::string>> contacts_of(const Ticket& ticket);
// Whether this machine can send to any of `contacts` at all, when there are some. ERRORS: kUnreachable (no route to
// any: the network is down).
Status check_routes(const std::vector<std::string>& contacts);
bool all_loopback(const std::vector<std::string>& addresses);

struct DirectoryOptions {
  RunId run;
  std::uint32_t network = 0;
  std::string bind = "0.0.0.0";
  std::uint16_t port = 0;  // UDP; 0: any
  std::vector<std::string> bootstrap;
  std::string cache_path;
};
// The DHT's supervised child and the directory over it, on `loop`. ERRORS: DhtChild::start's.
Result<std::unique_ptr<DhtDirectory>> open_directory(EventLoop& loop, Storage& storage,
                                                     const DirectoryOptions& options);

}  // namespace shoal
