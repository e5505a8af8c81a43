#pragma once
// How large a swarm may grow: one swarm of so many peers in virtual time, with churn and without faults, and what it
// costs. Deterministic but for what is measured of this machine (seconds, CPU time).
//
// Thread: one.   Bounds: those of the product.
#include <cstdint>
#include <string>

#include "common/time.h"

namespace shoal {

struct ScaleOptions {
  std::size_t peers = 100;
  std::uint16_t stages = 0;  // 0: three, and one more for each 50 peers beyond 150
  std::uint64_t seed = 1;
  Duration measured = 30s;     // of virtual time, once every peer serves
  Duration patience = 120s;    // for that
  Duration churn_period = 1s;  // a peer is killed and another comes; 0: never
};

struct ScaleFigures {
  std::uint64_t peers = 0, stages = 0, serving = 0, members = 0, connections = 0, churned = 0, committed = 0,
                rounds = 0;
  double admitted_per_second = 0;           // from the start until every peer was a member; 0: not all became one
  double serving_after = 0;                 // virtual seconds until every peer served
  double virtual_seconds = 0, seconds = 0;  // measured: of the swarm, of this machine
  // A virtual second, while measured; bytes are those of whole wire messages.
  double launch_bytes = 0, list_bytes = 0, peers_bytes = 0, messages = 0;
  double launch_cpu = 0;  // seconds in the launching process's callbacks, a virtual second
  double virtual_per_second() const { return seconds > 0 ? virtual_seconds / seconds : 0; }
};

ScaleFigures measure_scale(const ScaleOptions& options);

std::string text_of(const ScaleFigures& figures);
// One line: an object with every figure by name.
std::string json_of(const ScaleFigures& figures);

}  // namespace shoal
