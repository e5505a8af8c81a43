#pragma once
// What a SimNetwork knows of its hosts and connections; for its own sources.
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/sim_network.h"
#include "sim/sim_wire.h"

namespace shoal {

struct SimNetwork::Place {
  Address address;
  SimHostShape shape;
  std::unique_ptr<SimHost> host;
  SimWire* wire = nullptr;
  TimePoint up_free{}, down_free{}, control_free{};
};

// One lane in one direction.
struct SimNetwork::Pipe {
  std::deque<Bytes> arrived;                 // handed to the host's loop, not taken yet
  std::vector<std::pair<Lane, Bytes>> held;  // stopped by a partition (kept in the control lane's pipe for both)
  TimePoint last_arrival{};
  std::uint64_t outstanding = 0;
  bool was_busy = false;
};

// Side 0 dialled.
struct SimNetwork::Connection {
  std::array<Place*, 2> ends{};
  Address dialled{};
  SimNats::Route route{};                    // that it was dialled by
  std::array<SimWire*, 2> wires{};           // null: that end is gone
  std::array<std::array<Pipe, 2>, 2> pipes;  // [receiving side][lane]
  SimRelay* relay = nullptr;                 // that joined it; its latency is paid on both legs
  Place* relay_place = nullptr;
  bool via = false;  // dialled at a relay: ends[1] is that until it joins
  // How long what `side` sends is on its way, up to the relay where there is one.
  Duration leg(int side) const {
    return ends[side]->shape.latency / 2 + (relay ? relay_place : ends[1 - side])->shape.latency / 2;
  }
  Duration latency() const { return relay ? leg(0) + leg(1) : leg(0); }
  // Whether what is on its way to `side` waits, by the ways (from, to) that are blocked.
  bool stopped(int side, const std::set<std::pair<Address, Address>>& blocked) const {
    const Address &from = ends[1 - side]->address, &to = ends[side]->address;
    if (!relay) return blocked.contains({from, to});
    return blocked.contains({from, relay->host()}) || blocked.contains({relay->host(), to});
  }

  bool up = false;
  bool forgotten = false;  // by a router on its way: nothing crosses any more, and nobody is told
  std::array<std::optional<Error>, 2> down_held;  // news that a partition stops
};

}  // namespace shoal
