#include "bench/routing_worlds.h"

#include <algorithm>
#include <filesystem>

#include "bench/swarm_trace.h"
#include "layout/link_table.h"

namespace shoal {

namespace {

constexpr double kTraceFaster = 60;                         // an hour of the trace is a minute of the world
constexpr std::uint64_t kTraceSeed = 1;                     // draws which machine goes where a trace only counts them
constexpr Duration kTraceBegin = std::chrono::minutes(60);  // of the trace, when all of its first machines are there
constexpr Duration kTraceMeasured = 300s;
constexpr double kThinLine = 1e6 / 8;
constexpr std::uint64_t kRegionFrame = 16 << 20;
constexpr std::size_t kRegionFlight = 6;  // microbatches under way for each peer: lines are long

RoutingWorld world_of(std::string name, std::size_t senders, const std::vector<Duration>& computes) {
  RoutingWorld world;
  world.name = std::move(name);
  world.senders = senders;
  for (const Duration compute : computes) world.peers.push_back({.compute = compute});
  return world;
}

RoutingWorld equal(std::string name, std::size_t senders = 8) {
  return world_of(std::move(name), senders, std::vector<Duration>(6, 40ms));
}

RoutingWorld unequal(std::string name, std::size_t senders) {
  return world_of(std::move(name), senders, {20ms, 20ms, 40ms, 40ms, 80ms, 80ms});
}

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

}  // namespace

std::vector<RoutingWorld> routing_worlds() {
  std::vector<RoutingWorld> worlds;
  worlds.push_back(equal("equal"));
  for (const std::size_t senders : {1, 2, 8, 32})
    worlds.push_back(unequal("unequal-" + std::to_string(senders), senders));
  worlds.push_back(equal("heavy-tail"));
  for (RoutingPeerShape& peer : worlds.back().peers) peer.tail = 1;
  worlds.push_back(equal("gray-10"));
  worlds.back().peers[0].slower = 10;
  worlds.push_back(equal("gray-100"));
  worlds.back().peers[0].slower = 100;
  worlds.push_back(equal("one-way"));
  worlds.back().peers[0].mutes = true;
  worlds.push_back(equal("hung"));
  worlds.back().peers[0].hangs = true;
  worlds.push_back(unequal("stale-words", 32));
  worlds.back().words_age = 1s;
  worlds.push_back(equal("stale-list"));
  for (std::size_t place = 0; place < 6; ++place) worlds.back().changes.push_back({0s, place, place != 5});
  worlds.back().changes.push_back({10s, 0, false});
  worlds.back().changes.push_back({20s, 5, true});
  worlds.back().list_age = 15s;
  worlds.push_back(unequal("liar", 8));
  worlds.back().peers[5].claims = 0.02;
  worlds.push_back(equal("thin-lines", 2));
  worlds.back().line = [](std::size_t, std::size_t) { return RoutingLine{20ms, kThinLine}; };
  return worlds;
}

Result<RoutingWorld> world_of_lines(const std::string& path) {
  SHOAL_ASSIGN(const LinkTable links, load_links(path));
  const std::size_t regions = links.regions.size();
  if (regions < 2) return make_error(ErrorCode::kInput, path + ": two regions at least are wanted");
  const std::size_t peers = regions / 2;
  RoutingWorld world = world_of(stem_of(path), regions - peers, std::vector<Duration>(peers, 200ms));
  world.in_flight = kRegionFlight * peers;
  world.frame_bytes = kRegionFrame;
  world.line = [lines = links.lines, regions](std::size_t sender, std::size_t peer) {
    const ShapeLine& line = lines[2 * sender * regions + 2 * peer + 1];
    return RoutingLine{from_seconds(line.delay), line.rate};
  };
  return world;
}

Result<RoutingWorld> world_of_trace(const std::string& path) {
  SHOAL_ASSIGN(const SwarmTrace trace, read_trace(path, kTraceSeed));
  std::uint32_t nodes = 0;
  RoutingWorld world;
  world.name = trace.name;
  for (const TraceEvent& event : trace.events) {
    const double at = (event.seconds - seconds_of(kTraceBegin)) / kTraceFaster;
    world.changes.push_back({from_seconds(std::max(0.0, at)), event.node, event.joins});
    nodes = std::max(nodes, event.node + 1);
  }
  world.peers.assign(nodes, {.compute = 200ms});
  world.senders = 8;
  world.in_flight = 96;
  world.measured = kTraceMeasured;
  return world;
}

}  // namespace shoal
