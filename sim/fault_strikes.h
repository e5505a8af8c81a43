#pragma once
// Applies faults to a swarm and ends them. What lasts is declared, not undone: whenever the set of faults that are
// under way changes, every line, device, disk, clock and cut pair is set to what that set says.
//
// The guard: no fault takes the last holder of a stage's newest state for good. A process that dies leaves another one
// that is alive and holds the stage's anchor at no older version. Not where peers write checkpoints.
// Thread: the simulation's.   Borrows: the swarm.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/fault_plan.h"
#include "sim/swarm.h"

namespace shoal {

class FaultStrikes {
 public:
  FaultStrikes(Swarm& swarm, Rng rng) : swarm_(swarm), rng_(rng) {}

  // False: it may not strike now (its victim is away, or the guard forbids it).
  bool begin(const Fault& fault);
  // Ends what is due, and brings back a launching process that its disk or we ended.
  void tend();
  // Something is under way that will end by itself.
  bool pending() const;
  // Something is under way, also for good, or the launching process is away.
  bool troubled() const { return !active_.empty() || launch_away(); }
  // Ends what keeps a core from working: the launching process, the directory, and a reachable replica of every stage
  // that holds the newest state, with one that can be dialled where others cannot; the relay where that one is needed:
  // the launching process or a whole stage is behind it. Other lasting faults stay. Returns
  // who is the core.
  std::vector<std::size_t> heal_core();
  // Peers that suffer still from a fault of their own, not of a pair (Session::peer_tag).
  std::set<std::uint64_t> afflicted() const;

  const std::map<FaultKind, std::uint64_t>& struck() const { return struck_; }
  const std::map<ErrorCode, std::uint64_t>& launch_errors() const { return launch_errors_; }
  std::vector<std::string> take_story() { return std::exchange(story_, {}); }

 private:
  struct Active {
    Fault fault;
    TimePoint until;  // max: lasting
  };
  bool strike(const Fault& fault);
  bool strike_launch(FaultKind kind);
  bool strike_router(const Fault& fault);
  void end(const Fault& fault);
  void apply();
  void apply_hosts();
  void apply_pairs();
  void apply_relay();
  SimHostShape shape_of(std::size_t peer) const;
  bool away(std::size_t peer) const;
  bool launch_away() const;
  bool may_lose(std::size_t peer) const;
  void forge_records(std::size_t count);
  void say(const std::string& what);

  Swarm& swarm_;
  Rng rng_;
  std::vector<Active> active_;
  std::map<std::size_t, Duration> jumped_;  // wall clocks, for good
  std::set<std::pair<Address, Address>> blocked_;
  std::map<FaultKind, std::uint64_t> struck_;
  std::map<ErrorCode, std::uint64_t> launch_errors_;
  std::vector<std::string> story_;
};

}  // namespace shoal
