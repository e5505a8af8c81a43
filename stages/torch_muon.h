#pragma once
// Muon's step of one tensor (stages/muon.h) by operations of the tensor library. Internal to the files that see it.
#include "stages/step_arrays.h"
#include "stages/torch_arena.h"

namespace shoal {

// kOther := the step from kCurrent by the window's sum, + shift (size() floats on the device) unless null; both moments
// in place. REQUIRES: parameter.matrices > 0.
void muon_by_tensors(TorchArena& arena, ArenaRole accumulator, const ParameterSpec& parameter,
                     const AdamWFactors& factors, const at::Tensor* shift);

}  // namespace shoal
