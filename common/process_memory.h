#pragma once
// What this process takes of the machine's memory. Thread-safe.
#include <cstdint>

namespace shoal {

// Bytes that are resident: now, and the most since the start. 0 where the system does not tell.
struct ProcessMemory {
  std::uint64_t now = 0, most = 0;
};
ProcessMemory process_memory();

}  // namespace shoal
