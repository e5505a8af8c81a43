#pragma once
// At which of its addresses a peer can be dialled: each is dialled anew, beside any connection that stands, with the
// peer's key as the one that must answer; whoever answers is hung up on before a message is said.
//
// Thread: loop only.   Borrows: the wire, which outlives it; its owner hands on what the wire says of these
// connections. Bounds: limits::kAddressesMax connections a trial, each as long as the wire dials (seconds); trials by
// the caller.
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/ids.h"
#include "common/result.h"
#include "transport/whereabouts.h"
#include "transport/wire.h"

namespace shoal {

using AddressTried = std::function<void(const std::string& address, const Status& answered)>;

class DialTrials {
 public:
  explicit DialTrials(Wire& wire) : wire_(wire) {}
  ~DialTrials();
  DialTrials(const DialTrials&) = delete;
  DialTrials& operator=(const DialTrials&) = delete;

  // Dials all of them at once. `tried` runs once for each, never inside this call: success where it answers.
  // REQUIRES: `whereabouts` is usable and dialable.
  void begin(const PeerId& peer, const Whereabouts& whereabouts, AddressTried tried);
  // False: not a connection of a trial.
  bool on_up(ConnectionId connection);
  bool on_down(ConnectionId connection, const Error& cause);

 private:
  struct Trial {
    std::string address;
    std::shared_ptr<const AddressTried> tried;
  };
  Wire& wire_;
  std::map<ConnectionId, Trial> trials_;
};

}  // namespace shoal
