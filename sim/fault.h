#pragma once
// One thing that happens to a swarm from outside, as a value: what, when, for how long, to whom and how hard. Drawn by
// sim/fault_plan.h, applied by sim/fault_strikes.h.
#include <cstdint>
#include <string_view>

#include "common/time.h"

namespace shoal {

enum class FaultKind : std::uint8_t {
  // processes and machines
  kKill,          // kill -9 of a peer: its kernel closes its connections
  kMachineDeath,  // of a peer: the others see silence
  kFreeze,        // of a peer: SIGSTOP, SIGCONT
  kLaunchKill,    // kill -9 of the launching process: the next one reads what was not synced
  kLaunchPower,   // its machine loses power: silence, and what was not synced is gone or torn
  kLaunchFreeze,  // SIGSTOP of the launching process
  // the launching process's disk
  kSlowDisk,     // strength: seconds a sync takes
  kFullDisk,     // no byte more
  kFailingDisk,  // every sync and replacement fails
  // the network
  kCut,              // the connections of two peers break
  kPartition,        // two peers hear nothing of each other
  kOneWay,           // `who` is not heard by `other`
  kLaunchPartition,  // a peer and the launching process hear nothing of each other
  kLaunchOneWay,     // the launching process does not hear a peer
  kJitter,           // strength: seconds a message may take longer
  kShapedRate,       // strength: bytes per second of both directions of a peer's line
  kReorder,          // strength: seconds by which one connection of a peer may lag behind another
  kLate,             // strength: seconds that some messages of a peer are held up for, and those behind them
  kRepeat,           // strength: share of a peer's messages that arrive twice
  kFlip,             // strength: share of a peer's messages of which a byte is flipped under the framing
  // the device
  kSlowDevice,  // strength: factor
  kHungDevice,  // nothing is computed
  // clocks
  kClockOffset,  // strength: seconds by which a peer's wall clock is wrong, to either side
  kClockJump,    // the same, and it stays so
  // the directory
  kDeadDirectory,    // everybody's child is dead
  kStaleDirectory,   // what is written does not arrive
  kForgedDirectory,  // strangers write, and repeat what others wrote
  // routers; only where a plan asks for them (FaultOptions::nat)
  kNatFlush,     // a peer's router forgets its connections; strength: below 1 silently, from 1 on by RST
  kNatRenumber,  // the router of a peer's home has a new address
  kReachLost,    // nobody can dial a peer any more; what stands goes on
  kReachWon,     // everybody can dial a peer
  // the run's relay; only where a plan asks for them (FaultOptions::relay)
  kRelayDeath,  // strength: below 1 its machine goes silently, from 1 on its process ends. Lasting: for good
  kRelayStall,  // it takes all and passes nothing on
  kRelaySlow,   // strength: bytes per second
  kCount,
};

struct Fault {
  FaultKind kind = FaultKind::kKill;
  Duration at{};                   // after the swarm's start
  Duration lasts{};                // nothing for what happens in a moment
  std::size_t who = 0, other = 0;  // peers; `other` differs from `who` where there are two
  double strength = 0;
  bool lasting = false;  // ends only when a core of the swarm is healed
};

std::string_view name_of(FaultKind kind);

}  // namespace shoal
