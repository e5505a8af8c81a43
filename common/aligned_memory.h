#pragma once
// Memory for arrays, aligned for vector kernels, that the heap gives out again when it is free. glibc's aligned
// allocation does not do that: it looks for a piece longer by the alignment than what it gives, so that an array never
// fits where one of its own size was. A peer that keeps graphs and drops them grew by a third that way.
//
// Thread: any.
#include <cstddef>
#include <cstdint>

namespace shoal {

// At a multiple of kBufferAlignment; not cleared. REQUIRES: bytes > 0. THROWS: std::bad_alloc, as operator new.
std::uint8_t* take_aligned(std::size_t bytes);
// REQUIRES: `memory` came from take_aligned().
void give_back_aligned(std::uint8_t* memory);

}  // namespace shoal
