#pragma once
// Memory of buffers so large that clearing it, or giving it back, at once would hold its thread for tens of
// milliseconds a GiB. It comes from the kernel as zero pages, each cleared when it is first touched; a thread of its
// own ("reclaim", begun with the first) gives it back in pieces. Memory that was taken and not touched costs addresses
// only.
//
// Thread: any.
#include <cstddef>
#include <cstdint>

namespace shoal {

// Where glibc begins to map as well, as begin_batch_work() sets it: smaller memory is used again by the next
// microbatch.
inline constexpr std::size_t kLargeBytes = 32u << 20;

// Zeroed, aligned to pages. THROWS: std::bad_alloc, as operator new.
std::uint8_t* take_large(std::size_t bytes);
// Returns at once. REQUIRES: `memory` came from take_large(bytes).
void give_back_large(std::uint8_t* memory, std::size_t bytes);

}  // namespace shoal
