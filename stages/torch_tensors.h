#pragma once
// Tensors of the library and of the host, to and fro. Internal to the files that see the library.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <span>
#include <vector>

#include "common/tensor_view.h"
#include "stages/model_family.h"

namespace shoal {

// REQUIRES: contiguous, f32, on the host.
inline std::span<const float> floats_of(const at::Tensor& tensor) {
  return {static_cast<const float*>(tensor.const_data_ptr()), static_cast<std::size_t>(tensor.numel())};
}

// Shares the tensor's memory, which must not be written any more.
inline HostTensor host_tensor_of(const at::Tensor& values) {
  const auto owner = std::make_shared<at::Tensor>(values.detach().cpu().contiguous());
  const std::span<const float> floats = floats_of(*owner);
  return {DType::kF32, Shape(owner->sizes().begin(), owner->sizes().end()), Bytes::wrap(owner, bytes_of(floats))};
}

// On the host it shares the tensor's memory.
at::Tensor on_device(const HostTensor& tensor, const at::Device& device);

// The weights of one part, of all those of a stage in arena order.
inline std::span<const at::Tensor> part_of(const std::vector<ParameterSpec>& parameters,
                                           std::span<const at::Tensor> weights, std::uint32_t part) {
  const auto found = std::ranges::equal_range(parameters, part, {}, &ParameterSpec::part);
  return weights.subspan(static_cast<std::size_t>(found.begin() - parameters.begin()), found.size());
}

}  // namespace shoal
