#pragma once
// Where tensors on the CPU have their memory from. Thread: any.

namespace shoal {

// From now on from common/aligned_memory.h: see there. What was allocated before goes back as it came.
void use_aligned_memory();

}  // namespace shoal
