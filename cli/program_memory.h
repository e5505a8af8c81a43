#pragma once
// What this process takes of memory without any stage. Sees no tensor library.
#include <cstdint>

namespace shoal {

// Bytes that are resident once the tensor library has made a pass of a tiny stage, which maps what such passes need of
// it. On this thread; some ten milliseconds. kProgramBytes where the system or the library does not tell.
std::uint64_t measured_program_bytes();

}  // namespace shoal
