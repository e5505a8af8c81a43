#pragma once
// What this process takes of the machine's memory, and what is left of it. Thread-safe.
#include <cstdint>

namespace shoal {

// Bytes that are resident: now, and the most since the start. 0 where the system does not tell.
struct ResidentMemory {
  std::uint64_t now = 0, most = 0;
};
ResidentMemory resident_memory();

// Bytes that the machine can give to new work without swapping; 0 where the system does not tell.
std::uint64_t available_memory();

}  // namespace shoal
