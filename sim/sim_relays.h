#pragma once
// The relays of a SimNetwork: where each stands, which pairs they may join, which wires are called at them, and the
// calls. What crosses a joined connection is the network's, and waits for the relay's rate in sim_relay.h.
//
// Thread: the simulation's.   Borrows: the network, which owns it.
// Bounds: a relay each address that there ever was one at, and an entry each pair that was ever joined; pairs at a time
// as of sim_relay.h.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/sim_relay.h"
#include "transport/wire.h"

namespace shoal {

class SimNetwork;
class SimWire;

// Two that a relay joined, as they were then.
struct SimJoin {
  Address relay;
  PeerId caller, callee;
};

class SimRelays {
 public:
  explicit SimRelays(SimNetwork& network) : network_(network) {}

  // One that listens at `address`, as part of the process on the host `host`, with which it dies and stands still.
  // Again where it stood: it lives again. 0 bytes a second = unlimited.
  void add(const Address& address, const Address& host, double bytes_per_second);
  // It ends by itself: what it joined breaks at both ends, or, where it ends silently, no end hears anything more.
  void end(const Address& address, bool silent = false);
  SimRelay* at(const Address& address) const;  // null: there was never one
  const std::map<Address, std::unique_ptr<SimRelay>>& all() const { return relays_; }

  // Which pairs (caller, callee) relays join; without it any. `open`: strangers may call it, and its pairs do not count
  // as those of one peer.
  void set_listed(const PeerId& open, std::function<bool(const PeerId&, const PeerId&)> on_list) {
    open_ = open;
    on_list_ = std::move(on_list);
  }
  const std::vector<SimJoin>& joined() const { return joined_; }

  // ---- what the network and its wires tell it, and ask ----
  void set_frozen(const Address& host, bool frozen);
  void end_with(const Address& host, bool silent);
  // `wire` is called at these from now on, and at no others. Empty: it is gone.
  void be_called_at(SimWire& wire, const std::vector<Address>& relays);
  // The registrations of a host break off, and stand again by themselves; without `resets` this takes longer.
  void break_homes(const Address& host, bool resets);
  // The relay that connection `id` dialled was reached: the call is passed on, or the connection breaks.
  void call(ConnectionId id, const PeerId& callee);
  bool joins(const PeerId& caller, const PeerId& callee) const { return !on_list_ || on_list_(caller, callee); }
  void note_joined(SimJoin join) { joined_.push_back(std::move(join)); }
  bool carries(ConnectionId id) const;  // a relay joined it, or passes its call on

 private:
  std::string refusal_of(const SimRelay* relay, const PeerId& caller, const PeerId& callee) const;
  std::size_t pairs_of(const SimRelay& relay, const PeerId* peer) const;

  SimNetwork& network_;
  std::map<Address, std::unique_ptr<SimRelay>> relays_;
  std::map<const SimWire*, std::vector<Address>> homes_;  // where each wire is called; never iterated
  PeerId open_;
  std::function<bool(const PeerId&, const PeerId&)> on_list_;
  std::vector<SimJoin> joined_;
};

}  // namespace shoal
