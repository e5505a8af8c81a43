#pragma once
// Tensors of the library and of the host, to and fro. Internal to the files that see the library.
#include <span>

#include "common/tensor_view.h"

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
at::Tensor on_device(std::span<const float> values, const c10::Device& device);

}  // namespace shoal
