#pragma once
// The twins in the place of CUDA's kernels, over memory of the processor: the way of a GPU without one.
#include "kernels/step_kernels.h"

namespace shoal {

extern const StepKernels kTwinKernels;

}  // namespace shoal
