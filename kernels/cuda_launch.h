#pragma once
// What the CUDA sources share, and nobody else: arguments judged before a launch, and what the runtime said of it.
// Built only with CUDA.
#include <cstddef>

#include "common/result.h"

namespace shoal {

bool is_aligned_to(const void* pointer, std::size_t bytes);

// Blocks of `elements_per_block` that cover n elements. ERRORS: kInput (too many; `kernel` is named).
Result<unsigned> cuda_blocks(const char* kernel, std::size_t n, std::size_t elements_per_block);

// What became of the launch right before. ERRORS: kUnsupported (refused, with the runtime's text).
Status launch_status(const char* kernel);

}  // namespace shoal
