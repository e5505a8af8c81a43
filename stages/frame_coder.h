#pragma once
// How the tensors of one pass come to an executor and leave it. A pass is decode -> compute -> encode
// (stages/executor.h): the caller hands in one coder a pass and reads from it afterwards what the pass made. What the
// tensors travel as is the coder's own matter: stages/host_coder.h passes host tensors on,
// runtime/edge/hop_coders.h has frames and codecs.
//
// The executor owns the memory on both sides and says where it is, so a coder never asks which executor it serves: a
// tensor that was computed on a GPU is coded there.
// Thread: the executor's, during the pass.
#include "common/result.h"
#include "kernels/place.h"

namespace shoal {

class FrameCoder {
 public:
  virtual ~FrameCoder() = default;
  // Fills `to` with what came: the activation of a forward, the gradient of a backward. Returns its root mean square
  // (kernels/norm.h), which is not finite when a value is not: the executor refuses those and names them, without
  // reading the tensor once more.
  virtual Result<double> decode(const PlacedSpace& to) = 0;
  // Takes what goes on, which is finite. A gradient is not counted yet, and on an error never will be.
  virtual Status encode(const PlacedTensor& from) = 0;
};

}  // namespace shoal
