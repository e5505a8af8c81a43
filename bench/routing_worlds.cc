#include "bench/routing_worlds.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>
#include <string_view>

#include "bench/swarm_trace.h"
#include "common/csv.h"
#include "common/os/posix_file.h"

namespace shoal {

namespace {

constexpr double kTraceFaster = 60;                         // an hour of the trace is a minute of the world
constexpr std::uint64_t kTraceSeed = 1;                     // draws which machine goes where a trace only counts them
constexpr Duration kTraceBegin = std::chrono::minutes(60);  // of the trace, when all of its first machines are there
constexpr Duration kTraceMeasured = 300s;
constexpr std::size_t kLinesBytesMax = 1 << 20;
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

Error malformed(const std::string& path, std::size_t line, const std::string& wanted) {
  return make_error(ErrorCode::kInput, path + ", line " + std::to_string(line) + ": " + wanted);
}

using Regions = std::pair<std::size_t, std::size_t>;
Regions regions_of(std::size_t sender, std::size_t peer) {
  const std::size_t a = 2 * sender, b = 2 * peer + 1;
  return {std::min(a, b), std::max(a, b)};
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
  return worlds;
}

Result<RoutingWorld> world_of_lines(const std::string& path) {
  SHOAL_ASSIGN(const Bytes bytes, read_file(path, kLinesBytesMax));
  const auto rows = csv_rows({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const CsvRow top = rows.empty() ? CsvRow{} : rows.front();
  const auto column = [&heading = top.cells](std::string_view name) {
    const auto at = std::find(heading.begin(), heading.end(), name);
    return at == heading.end() ? std::nullopt : std::optional<std::size_t>(at - heading.begin());
  };
  const auto gigabits = column("bandwidth_gbps"), megabits = column("bandwidth_mbps"), delay = column("delay_ms");
  const auto rate = gigabits ? gigabits : megabits;
  if (!rate || !delay)
    return malformed(path, top.line, "a heading with delay_ms, and bandwidth_gbps or bandwidth_mbps");
  std::map<std::string_view, std::size_t> regions;
  std::map<Regions, RoutingLine> lines;
  for (const auto& [line, cells] : std::span(rows).subspan(1)) {
    const auto number = [&row = cells](std::size_t at) {
      return at < row.size() ? csv_number<double>(row[at]) : std::nullopt;
    };
    const auto ms = number(*delay), fast = number(*rate);
    if (!ms || !fast || *fast <= 0) return malformed(path, line, "two regions, a delay and a rate");
    const std::size_t a = regions.try_emplace(cells[0], regions.size()).first->second;
    const std::size_t b = regions.try_emplace(cells[1], regions.size()).first->second;
    lines[{std::min(a, b), std::max(a, b)}] = {from_seconds(*ms / 1000), *fast * (gigabits ? 1e9 : 1e6) / 8};
  }
  if (regions.size() < 2) return malformed(path, top.line, "two regions at least");
  const std::size_t peers = regions.size() / 2;
  RoutingWorld world = world_of(stem_of(path), regions.size() - peers, std::vector<Duration>(peers, 200ms));
  world.in_flight = kRegionFlight * peers;
  world.frame_bytes = kRegionFrame;
  for (std::size_t sender = 0; sender < world.senders; ++sender)
    for (std::size_t peer = 0; peer < peers; ++peer)
      if (!lines.contains(regions_of(sender, peer))) return malformed(path, top.line, "a line for each two regions");
  world.line = [lines](std::size_t sender, std::size_t peer) { return lines.at(regions_of(sender, peer)); };
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
