#pragma once
// Tensors of the library and of the host, to and fro. Internal to the files that see the library.
#include <cstdint>
#include <span>
#include <vector>

#include "common/tensor_view.h"
#include "stages/model_family.h"

namespace at {
class Tensor;
}
namespace c10 {
struct Device;
}

namespace shoal {

// REQUIRES: contiguous, f32, on the host.
std::span<const float> floats_of(const at::Tensor& tensor);
// Shares the tensor's memory, which must not be written any more.
HostTensor host_tensor_of(const at::Tensor& values);
// Ids (holds_ids) as int64 of the same shape, on the host.
at::Tensor ids_of(const HostTensor& tokens);
// On the host it shares the tensor's memory.
at::Tensor on_device(const HostTensor& tensor, const c10::Device& device);

// The weights of one part, of all those of a stage in arena order.
std::span<const at::Tensor> part_of(const std::vector<ParameterSpec>& parameters, std::span<const at::Tensor> weights,
                                    std::uint32_t part);

}  // namespace shoal
