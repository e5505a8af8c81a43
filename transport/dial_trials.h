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
#include "transport/whereabouts.h"
#include "transport/wire.h"

namespace shoal {

class DialTrials {
 public:
  explicit DialTrials(Wire& wire) : wire_(wire) {}
  ~DialTrials();
  DialTrials(const DialTrials&) = delete;
  DialTrials& operator=(const DialTrials&) = delete;

  // Dials all of them at once. `done` never runs inside this call: success when the first one answers, else
  // kUnreachable with what became of each.
  // REQUIRES: `whereabouts` is usable and dialable.
  void begin(const PeerId& peer, const Whereabouts& whereabouts, std::function<void(Status)> done);
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
