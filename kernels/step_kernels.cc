#include "kernels/step_kernels.h"

#if SHOAL_WITH_CUDA
#include "kernels/accumulate_cuda.h"
#include "kernels/adamw_cuda.h"
#endif

namespace shoal {

const StepKernels* cuda_step_kernels() {
#if SHOAL_WITH_CUDA
  static constexpr StepKernels kKernels{begin_screen_cuda, screen_cuda,     accumulate_unless_cuda,
                                        norm_blocks_cuda,  step_scale_cuda, adamw_cuda};
  return &kKernels;
#else
  return nullptr;
#endif
}

}  // namespace shoal
