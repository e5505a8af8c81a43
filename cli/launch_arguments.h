#pragma once
// What `shoal launch` was asked for: its options, the run's file, and the folder that keeps the run.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/program/options.h"
#include "dht/inspect.h"
#include "page/page_port.h"
#include "runtime/config/config.h"

namespace shoal {

// In the run's folder.
inline constexpr char kRunFile[] = "/run.toml", kListenFile[] = "/listen";

struct LaunchArguments {
  std::string run;  // RUN.toml; with --resume or --standby also the run's folder
  std::string folder, listen, save, events, events_level, tensorboard;
  std::string relay = "10mbit", via;  // what its own relay carries, "0": there is none; where it is called
  unsigned relay_port = 0;            // 0: the one behind those of its lanes
  std::string layout;                 // a list of peers with stages; empty: none is wished
  std::vector<std::string> advertise, bootstrap;
  std::optional<PagePort> page;  // empty: there is none
  std::uint32_t network = 0;
  bool no_map = false;
  bool resume = false, no_dht = false;  // load_run sets `resume` with --standby
  bool standby = false;                 // resume, once no other process has the folder
  double seconds_between_lines = 1;
  // As long as `shoal inspect` may take whose questions begin when the run ends.
  double linger_s = seconds_of(2 * kInspectPatience);
};

// `arguments` outlives the parsing.
void add_launch_options(Command& command, LaunchArguments& arguments);

// Resolves the two ways to name a run, its file, or with --resume or --standby its folder, and names its folder.
// ERRORS: load_config's; kInput (a resumed run with another file than it was begun with), kMissing (--standby: no such
// folder, or no run in it), kUnsupported (--save of an executor that has no model).
Result<RunConfig> load_run(LaunchArguments& arguments);

// Where the layout has peers. ERRORS: load_peer_list's, wishes_of's.
Result<std::map<PeerId, StageId>> load_layout(const LaunchArguments& arguments, const RunConfig& config);

// Peers dial the ticket's address, so a resumed run listens where it did.
std::string listen_address(const LaunchArguments& arguments);
// The DHT's network: as given, or made of the run's key.
std::uint32_t network_of(const LaunchArguments& arguments, const RunId& run);

}  // namespace shoal
