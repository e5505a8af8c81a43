// Which processes of a swarm cannot be dialled, behind what they are, and the relay that joins them.
#include <cmath>
#include <set>

#include "sim/swarm.h"

namespace shoal {

namespace {

constexpr double kAtHomeShare = 0.7, kResetsShare = 0.3;

std::size_t unreachable_replicas(const SwarmOptions& options) {
  const std::size_t most = options.reach.unreachable < 1 ? options.replicas - 1u : options.replicas;
  return std::min<std::size_t>(most,
                               static_cast<std::size_t>(std::lround(options.reach.unreachable * options.replicas)));
}

// The last replicas of each stage.
bool is_unreachable(const SwarmOptions& options, std::size_t index) {
  const std::size_t replica = index / options.stages;
  return replica < options.replicas && replica + unreachable_replicas(options) >= options.replicas;
}

// Some draw the same one. Empty: it is behind a firewall of its own.
std::string home_of(const SwarmOptions& options, std::size_t index) {
  Rng draw = Rng(options.seed).fork("home" + std::to_string(index));
  if (!draw.chance(kAtHomeShare)) return {};
  return "home" + std::to_string(draw.below(unreachable_replicas(options) * options.stages));
}

}  // namespace

SimNat nat_of(const SwarmOptions& options, std::size_t index) {
  if (!is_unreachable(options, index)) return {};
  const bool resets = Rng(options.seed).fork("resets" + std::to_string(index)).chance(kResetsShare);
  const std::string home = home_of(options, index);
  if (home.empty()) return sim_firewall(resets);
  int place = 2;  // every home begins with the same address
  for (std::size_t other = 0; other < index; ++other)
    place += is_unreachable(options, other) && home_of(options, other) == home;
  return sim_home(home, "192.168.1." + std::to_string(place) + ":1", resets);
}

// The list takes no names.
Address relay_of(const SwarmOptions& options) {
  return options.reach.home_launch ? "203.0.113.9:443" : "203.0.113.1:443";
}

std::vector<RelayPlace> relays_of(const SwarmOptions& options) {
  if (options.reach.relay_bytes_per_second <= 0) return {};
  return {{relay_of(options), static_cast<std::uint32_t>(options.reach.relay_bytes_per_second * 8 / 1000)}};
}

Address launch_contact(const SwarmOptions& options) {
  return options.reach.home_launch ? "via/" + relay_of(options) : Address(kSimLaunchAddress);
}

void begin_relay(SimNetwork& network, const SwarmOptions& options) {
  const Address at = relay_of(options);
  const SimRelay* relay = network.relays().at(at);
  const SwarmReach& reach = options.reach;
  if (reach.relay_bytes_per_second <= 0 || (relay && relay->lives())) return;
  network.relays().add(at, reach.home_launch ? "relay:1" : kSimLaunchAddress, reach.relay_bytes_per_second);
}

std::function<bool(const PeerId&, const PeerId&)> joined_by_list(const Swarm& swarm) {
  return [&swarm, on_list = std::set<PeerId>()](const PeerId& caller, const PeerId& callee) mutable {
    if (swarm.launch() != nullptr) {
      on_list.clear();
      for (const StageMembers& stage : swarm.launch()->authority().members().stages)
        for (const Member& member : stage.members) on_list.insert(member.peer);
    }
    const PeerId& launch = swarm.run_key().id();
    return callee == launch || (on_list.contains(callee) && (caller == launch || on_list.contains(caller)));
  };
}

}  // namespace shoal
