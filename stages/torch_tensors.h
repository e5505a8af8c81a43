#pragma once
// Tensors of the library and of the host, to and fro. Internal to the files that see the library.
#include <span>

#include "common/tensor_view.h"
#include "stages/kept_tensor.h"

namespace at {
class Tensor;
}
namespace c10 {
struct Device;
}

namespace shoal {

// REQUIRES: contiguous, f32; on the host, if anybody reads them.
std::span<const float> floats_of(const at::Tensor& tensor);
// Shares the tensor's memory, which must not be written any more.
HostTensor host_tensor_of(const at::Tensor& values);
// Shares the tensor's memory likewise, which is at `place`. REQUIRES: contiguous, f32.
KeptTensor kept_tensor_of(const at::Tensor& values, const Place& place);
// Ids (holds_ids) as int64 of the same shape, on the host.
at::Tensor ids_of(const HostTensor& tokens);
// Shares the tensor's memory where it is the device's own.
at::Tensor on_device(const KeptTensor& tensor, const c10::Device& device);
at::Tensor on_device(std::span<const float> values, const c10::Device& device);

}  // namespace shoal
