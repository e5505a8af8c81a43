#pragma once
// shoal checkpoint prune. It removes what says that it is a checkpoint of ours, and nothing else.
#include <string>
#include <vector>

namespace shoal {

struct PruneArguments {
  std::vector<std::string> paths;
  double days = 30;
  bool dry_run = false;
};

// The exit code.
int prune_checkpoints(const PruneArguments& arguments, bool json);

}  // namespace shoal
