#pragma once
// One relay of a SimNetwork: who is called at it, and the line that all it joins share. What hosts send over it waits
// here in turns, control before bulk, for the relay's rate. Which calls are let through is said in sim_relays.h; the
// ways to and from it are the network's.
//
// Thread: the simulation's.   Borrows: the loop, which outlives it.
// Bounds: pairs in all and by peer, as of the product's relay (transport/relay/relay_book.h). How often one calls is
// not bounded here.
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "transport/wire.h"

namespace shoal {

class SimWire;

class SimRelay {
 public:
  static constexpr std::uint64_t kPieceBytes = 16u << 10;  // at a time, so that control waits behind no more
  static constexpr Duration kAnswerTime = 5s;              // a call that nobody answers fails after it
  static constexpr Duration kSilenceMax = 60s;             // a registration that a router forgot is noticed after it
  static constexpr Duration kRegisterAgain = 1s;           // one that was broken off stands again after it
  static constexpr std::size_t kPairsMax = 256, kPairsOfPeerMax = 32;

  // `host`: of the network, whose process it is part of. `stands`: whether a connection is there still.
  SimRelay(EventLoop& loop, Address host, std::function<bool(ConnectionId)> stands)
      : loop_(loop), host_(std::move(host)), stands_(std::move(stands)) {}

  const Address& host() const { return host_; }
  bool lives() const { return lives_; }
  bool stalled() const { return stalled_ || frozen_; }

  // ---- what becomes of it ----
  void begin(double bytes_per_second);  // 0 = unlimited
  void end();                           // what it knew and what waited is gone
  void set_rate(double bytes_per_second);
  void set_stalled(bool stalled);  // it takes everything and passes nothing on
  void set_frozen(bool frozen);    // the same, because its process stands still

  // ---- who is called at it ----
  // From `since` on, until forget(); one that stands already does so.
  void register_home(const PeerId& peer, SimWire* wire, TimePoint since) { homes_.try_emplace(peer, wire, since); }
  void forget(const SimWire* wire);
  // What registered it is broken, and stands again from `since` on.
  void break_home(const SimWire* wire, TimePoint since);
  // Null: it is not registered by now.
  SimWire* home_of(const PeerId& peer) const;

  // ---- what it carries ----
  // `through` is called when so many bytes of a direction of a connection are through the relay's line.
  void carry(ConnectionId id, int side, Lane lane, std::uint64_t bytes, std::function<void()> through);
  std::uint64_t carried() const { return carried_; }
  double allowed() const;  // so many its rate let through so far; infinite where it has none

 private:
  struct Waiting {
    std::uint64_t bytes;  // that are not through
    std::function<void()> through;
  };
  using Turns = std::map<std::pair<ConnectionId, int>, std::deque<Waiting>>;  // by connection and direction
  struct Home {
    SimWire* wire;
    TimePoint since;
  };
  void pump();
  void pass(Lane lane, std::pair<ConnectionId, int> turn, std::uint64_t bytes);
  void settle();  // what the rate allowed until now

  EventLoop& loop_;
  const Address host_;
  const std::function<bool(ConnectionId)> stands_;
  bool lives_ = false, stalled_ = false, frozen_ = false, busy_ = false;
  double rate_ = 0, allowed_ = 0;
  TimePoint since_{};  // when allowed_ was so much
  std::map<PeerId, Home> homes_;
  std::array<Turns, 2> waiting_;                      // by lane
  std::array<std::pair<ConnectionId, int>, 2> last_;  // by lane, the turn that was last
  std::uint64_t carried_ = 0;
  Lifetime lifetime_;
};

}  // namespace shoal
