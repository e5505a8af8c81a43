#include "kernels/frame_kernels.h"

#include "common/check.h"

#if SHOAL_WITH_CUDA
#include "kernels/adamw_cuda.h"
#include "kernels/cuda_memory.h"
#include "kernels/half_cuda.h"
#include "kernels/int8_tiles_cuda.h"
#include "kernels/packed_tiles_cuda.h"
#endif

namespace shoal {

#if SHOAL_WITH_CUDA
bool has_frame_kernels() { return true; }

const FrameKernels& frame_kernels() {
  static constexpr FrameKernels kKernels{narrow_to_half_cuda,  widen_half_cuda,      int8_quantise_cuda,
                                         int8_dequantise_cuda, pack_tiles_cuda,      unpack_tiles_cuda,
                                         norm_blocks_cuda,     take_cuda_memory,     give_cuda_memory,
                                         copy_to_cuda_memory,  copy_from_cuda_memory};
  return kKernels;
}
#else
bool has_frame_kernels() { return false; }

const FrameKernels& frame_kernels() {
  check_failed(__FILE__, __LINE__, "has_frame_kernels()", "no CUDA in this build");
}
#endif

}  // namespace shoal
