#pragma once
// A tensor that an executor keeps where it computed or decoded it. A value: immutable, copies share the memory.
#include <utility>

#include "kernels/place.h"

namespace shoal {

struct KeptTensor {
  KeptTensor() = default;
  KeptTensor(HostTensor values, Place where = {}) : tensor(std::move(values)), place(where) {}
  HostTensor tensor;  // its bytes are the processor's to read on the host alone
  Place place{};
  bool defined() const { return tensor.defined(); }
  PlacedTensor view() const { return {tensor.view(), place}; }
  const HostTensor& on_host() const {
    SHOAL_CHECK(place.on_host());
    return tensor;
  }
};

// Memory that becomes one, once it is filled. REQUIRES: nobody reads `tensor` before.
struct KeptSpace {
  MutableByteView bytes;
  KeptTensor tensor;
  PlacedSpace space() const { return {tensor.tensor.dtype, tensor.tensor.shape, bytes, tensor.place}; }
};

}  // namespace shoal
