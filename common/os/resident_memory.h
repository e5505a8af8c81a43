#pragma once
// What this process takes of the machine's memory, and what is left of it. Thread-safe.
#include <cstdint>
#include <string>

namespace shoal {

// Bytes that are resident: now, and the most since the start. 0 where the system does not tell.
struct ResidentMemory {
  std::uint64_t now = 0, most = 0;
};
ResidentMemory resident_memory();

// Bytes that the machine can give to new work without swapping, and the control groups of this process as well (of
// either version: a container's limit, a service's); 0 where the system does not tell, else at least 1. `root`: where
// the system's files are, another folder in tests.
std::uint64_t available_memory(const std::string& root = "");

}  // namespace shoal
