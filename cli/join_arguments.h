#pragma once
// The options of `shoal join`.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/executors.h"
#include "common/program/options.h"
#include "page/page_port.h"

namespace shoal {

struct JoinArguments {
  std::string ticket, listen, events, events_level;
  std::vector<std::string> advertise, bootstrap;
  ComputeOptions compute;
  std::uint64_t memory_mebibytes = 0;
  int stage = -1;
  double patience_s = 60, wait_s = 3600;
  std::vector<std::string> checkpoints;
  std::string hours, gpu_busy, up, down, name;
  std::optional<PagePort> page{};
  bool no_dht = false, no_map = false, once = false, no_checkpoints = false;
};

void add_join_options(Command& command, JoinArguments& arguments);

}  // namespace shoal
