#pragma once
// How the tensors of one pass come to an executor and leave it. A pass is decode -> compute -> encode
// (stages/executor.h): the caller hands in one coder a pass and reads from it afterwards what the pass made. What the
// tensors travel as is the coder's own matter: stages/host_coder.h passes host tensors on,
// runtime/edge/hop_coders.h has frames and codecs.
//
// The executor owns the memory on both sides and says where it is, so a coder never asks which executor it serves.
// Thread: the executor's, during the pass.
#include <cstdint>
#include <span>

#include "common/bytes.h"
#include "common/check.h"
#include "common/result.h"
#include "common/tensor_view.h"
#include "kernels/cuda_stream.h"

namespace shoal {

// Where memory is, and in which order it is touched.
struct Place {
  enum class Kind : std::uint8_t { kHost, kCuda };
  Kind kind = Kind::kHost;
  int device = 0;               // of a GPU: its number
  CudaStream stream = nullptr;  // of a GPU: what reads or writes the memory is queued there
};

// A tensor to read, wherever it is; it lives for the call.
struct PlacedTensor {
  TensorView tensor;  // its bytes are the processor's to read on the host alone
  Place place{};
  const TensorView& on_host() const {
    SHOAL_CHECK(place.kind == Place::Kind::kHost);
    return tensor;
  }
};

// Memory to fill with a tensor of this type and shape; it lives for the call.
struct PlacedSpace {
  DType dtype = DType::kF32;
  Shape shape;
  MutableByteView bytes;  // element_count(shape) * size_of(dtype), aligned as HostTensor's
  Place place{};
  MutableByteView on_host() const {
    SHOAL_CHECK(place.kind == Place::Kind::kHost);
    return bytes;
  }
  std::span<float> f32_on_host() const {
    SHOAL_CHECK(dtype == DType::kF32);
    return {reinterpret_cast<float*>(on_host().data()), bytes.size() / sizeof(float)};
  }
};

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
