#pragma once
// join --device all, or a list of devices: a process of `shoal join` for each (lend/join_each.h), each with a home and
// a key of its own below this machine's.
#include <string>

#include "cli/program.h"

namespace shoal {

inline constexpr const char* kListedDevices =
    "auto, cpu or cuda:N (default: auto); all, or a list as cuda:0,cuda:1: a process for each, with a key of its own";

// The program's exit code: the largest of theirs. REQUIRES: lists_devices(device).
int join_devices(const std::string& ticket, const std::string& device, const GlobalOptions& global);

}  // namespace shoal
