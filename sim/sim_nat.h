#pragma once
// What stands between the hosts of a SimNetwork and the others: firewalls, and the routers of homes. It says which host
// a dial comes to and whether it is answered there; connections are the network's (a router's table of them is flushed
// there). Nobody punches here, so that a symmetric router differs in nothing from a port-restricted one.
//
// Thread: the simulation's.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "transport/wire.h"

namespace shoal {

enum class NatKind : std::uint8_t {
  kOpen,      // answers whoever dials it
  kFirewall,  // no dial from outside is answered; what it dials itself stands
  kOnly443,   // as kFirewall, and lets out only what dials port 443
};

struct SimNat {
  NatKind kind = NatKind::kOpen;
  bool resets = false;  // what is not let through is refused by RST; else it meets silence
  // The router that it shares with hosts of the same home; empty: none. Others see the router's address. A host at home
  // that is kOpen has its port forwarded there.
  std::string home{};
  Address inner{};  // at home: where those of the same home dial it. Other homes may have the same one

  bool dialable() const { return kind == NatKind::kOpen; }
  bool operator==(const SimNat&) const = default;
};
inline SimNat sim_firewall(bool resets = false) { return {NatKind::kFirewall, resets}; }
inline SimNat sim_home(std::string home, Address inner, bool resets = false) {
  return {NatKind::kFirewall, resets, std::move(home), std::move(inner)};
}

// A dial that was answered by a host which is not open, as both were then.
struct SimDial {
  Address from, to;
  SimNat from_nat, to_nat;
};
// The rule of the model as a line where it is broken, else empty: such a host is dialled from its own home alone.
std::string broken_by(const SimDial& dial);

class SimNats {
 public:
  enum class Answer : std::uint8_t { kAnswered, kRefused, kSilent };
  struct Route {
    Address to;           // the host that it comes to, as the network names it
    bool inside = false;  // within a home
  };

  // From now on. What stands goes on.
  void set(const Address& host, SimNat nat) { nats_[host] = std::move(nat); }
  const SimNat& of(const Address& host) const;
  bool same_home(const Address& a, const Address& b) const;
  std::vector<Address> hosts_of(const std::string& home) const;
  // What others see of a host: its own address' host, or its router's.
  std::string outer_host(const Address& host) const;
  void renumber(const std::string& home) { ++outer_[home]; }  // its router has a new address

  Route route(const Address& from, const Address& dialled) const;
  Answer answer(const Address& from, const Address& dialled, const Route& route) const;
  void note_answered(const Address& from, const Address& to);
  const std::vector<SimDial>& answered() const { return answered_; }

 private:
  std::string outer_of(const std::string& home) const;

  std::map<Address, SimNat> nats_;    // without an entry: open, at no home
  std::map<std::string, int> outer_;  // of a home, which address it is at
  std::vector<SimDial> answered_;
};

}  // namespace shoal
