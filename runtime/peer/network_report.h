#pragma once
// What `shoal netcheck` found of the network between this machine and a run: in lines for people, with a remedy for
// each that is bad, and as JSON. Values; pure.
#include <optional>
#include <string>
#include <vector>

#include "common/program/json_text.h"
#include "common/time.h"
#include "runtime/peer/reach_probe.h"

namespace shoal {

struct NetworkReport {
  struct Outwards {     // a place that the ticket names
    std::string place;  // "IP:port"
    bool relay = false;
    std::optional<Duration> took{};  // of a connection; none: `why`
    bool refused = false;            // it answers, and nobody listens
    std::string why{};
    std::string port_443{};  // of its host: "open", "closed" (it answers, so that the port is let out), "silent"
  };

  std::vector<std::string> told;    // our addresses, as others would be told, the router's first
  std::optional<std::string> ipv6;  // a public address of ours
  // ---- the router, where one was asked ----
  bool router_asked = false, router_spared = false;  // --no-map, --advertise
  std::string mapped_by{};                           // "PCP", "NAT-PMP"; empty: `router_why`
  std::vector<std::string> mapped{};                 // what it forwards to us
  std::optional<std::string> outer{};                // its own address
  Duration router_took{};
  std::string router_why{};
  std::vector<Outwards> outwards;
  ReachProbe::Found run;
  std::uint16_t port = 0;  // of the control lane; the next one is of the bulk lane

  // The provider translates too: no router of ours can let anybody in by IPv4. None: nothing says so.
  std::optional<bool> carrier_nat() const;
  bool behind_router() const;
  // None: there is no answer, or nothing was dialled that others would: a stranger is at its own host alone.
  std::optional<Reach> reach() const;
  std::string reach_text() const;
  std::vector<std::string> remedies() const;
  std::vector<std::string> lines() const;  // one a row, then the remedies
  Json json() const;
};

}  // namespace shoal
