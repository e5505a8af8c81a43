#pragma once
// Float arrays looked at on the threads of the tensor library. Internal to the files that see it.
#include <span>
#include <string_view>

#include "common/ids.h"
#include "common/result.h"
#include "kernels/parallel_for.h"
#include "stages/stage_spec.h"

namespace at {
class Tensor;
}

namespace shoal {

// Pieces of at least this many floats: below it a second thread costs more than it saves.
inline constexpr std::size_t kParallelGrain = std::size_t{1} << 15;

ParallelFor torch_for();

// ERRORS: kNonFinite, by microbatch and role.
Status screen(std::span<const float> values, const MicrobatchId& microbatch, std::string_view role);
// On any device, and looked at there. REQUIRES: contiguous, f32.
Status screen(const at::Tensor& values, const MicrobatchId& microbatch, std::string_view role);
// The gradients of all parameters in their order, contiguous f32 on any device. ERRORS: kNonFinite, by microbatch and
// parameter.
Status screen_gradients(std::span<const at::Tensor> gradients, std::span<const ParameterSpec> parameters,
                        const MicrobatchId& microbatch);

}  // namespace shoal
