#pragma once
// Where the memory of a tensor is, and what every coder of tensors does with it there: bytes in and out, and how large
// the values are. Thread: any, as far as the place's stream is.   Ownership: borrows everything for the call.
// A tensor of a GPU exists only where frame_kernels() do.
#include <cstdint>
#include <span>
#include <utility>

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
  int device = 0;               // of a GPU: its number, which is the current one
  CudaStream stream = nullptr;  // of a GPU: what reads or writes the memory is queued there
  bool on_host() const { return kind == Kind::kHost; }
};

// A tensor to read, wherever it is; it lives for the call.
struct PlacedTensor {
  PlacedTensor(TensorView view, Place where = {}) : tensor(std::move(view)), place(where) {}
  TensorView tensor;  // its bytes are the processor's to read on the host alone
  Place place;
  const TensorView& on_host() const {
    SHOAL_CHECK(place.on_host());
    return tensor;
  }
};

// Memory to fill, wherever it is; it lives for the call.
struct PlacedBytes {
  PlacedBytes(MutableByteView memory, Place where = {}) : bytes(memory), place(where) {}
  MutableByteView bytes;
  Place place;
  MutableByteView on_host() const {
    SHOAL_CHECK(place.on_host());
    return bytes;
  }
};

// The same for a tensor of this type and shape.
struct PlacedSpace : PlacedBytes {
  // REQUIRES: element_count(shape) * size_of(dtype) bytes, aligned as HostTensor's.
  PlacedSpace(DType type, Shape extents, MutableByteView memory, Place where = {})
      : PlacedBytes(memory, where), dtype(type), shape(std::move(extents)) {}
  DType dtype;
  Shape shape;
  std::span<float> f32_on_host() const {
    SHOAL_CHECK(dtype == DType::kF32);
    return {reinterpret_cast<float*>(on_host().data()), bytes.size() / sizeof(float)};
  }
  PlacedTensor filled() const { return {{dtype, shape, bytes}, place}; }
};

// REQUIRES of all: equal sizes. ERRORS: kTooLarge (device memory), kUnsupported (the device refused).
Status put(ByteView from, const PlacedBytes& to);
Status fetch(const PlacedTensor& from, MutableByteView to);
Result<HostTensor> fetched(const PlacedTensor& from);
// kernels/norm.h, with its bits. REQUIRES: kF32.
Result<double> root_mean_square(const PlacedTensor& of);

}  // namespace shoal
