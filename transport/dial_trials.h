#pragma once
// Whether a peer can be dialled at the addresses that it tells others: each is dialled anew, beside any connection that
// stands, with the peer's key as the one that must answer; whoever answers is hung up on before a message is said.
//
// Thread: loop only.   Borrows: the wire, which outlives it; its owner hands on what the wire says of these
// connections. Bounds: limits::kAddressesMax connections a trial, each as long as the wire dials (seconds); trials by
// the caller.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/ids.h"
#include "transport/wire.h"

namespace shoal {

// What a stranger sends as frames of its JoinRequest before another address than the one it comes from is dialled for
// it: more than all that it can have us send there, so that nobody turns us against a third one at a profit.
inline constexpr std::size_t kDialPaymentBytes = 32u << 10;

// From where the request to dial came.
struct DialOrigin {
  std::string host;   // Wire::other_host; empty: not known
  bool paid = false;  // kDialPaymentBytes came with the request
};
// Those of `addresses` that may be dialled for a joiner that came from there: at its own host; elsewhere only once it
// paid, in private ranges only when it came from one, on this machine and this link (loopback, link-local) only when it
// came from there.
std::vector<std::string> dialable_addresses(const std::vector<std::string>& addresses, const DialOrigin& origin);

// As one text whatever it was written as: an IPv4 address in IPv6's clothes as IPv4, IPv6 in its shortest form.
std::string plain_host(const std::string& host);

// What is kept of addresses that a stranger tells: not empty, not long, not many.
std::vector<std::string> usable_addresses(std::vector<std::string> addresses);

class DialTrials {
 public:
  explicit DialTrials(Wire& wire) : wire_(wire) {}
  ~DialTrials();
  DialTrials(const DialTrials&) = delete;
  DialTrials& operator=(const DialTrials&) = delete;

  // Dials all of them at once. `done` never runs inside this call: success when the first one answers, else
  // kUnreachable with what became of each.
  // REQUIRES: usable_addresses, at least one.
  void begin(const PeerId& peer, const std::vector<std::string>& addresses, std::function<void(Status)> done);
  // False: not a connection of a trial.
  bool on_up(ConnectionId connection);
  bool on_down(ConnectionId connection, const Error& cause);

 private:
  struct Trial {
    std::vector<ConnectionId> open;
    std::string causes;
    std::function<void(Status)> done;
  };
  Wire& wire_;
  std::map<ConnectionId, std::shared_ptr<Trial>> trials_;
};

}  // namespace shoal
