#include "stages/torch_tensors.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <memory>

namespace shoal {

std::span<const float> floats_of(const at::Tensor& tensor) {
  return {static_cast<const float*>(tensor.const_data_ptr()), static_cast<std::size_t>(tensor.numel())};
}

HostTensor host_tensor_of(const at::Tensor& values) {
  const auto owner = std::make_shared<at::Tensor>(values.detach().cpu().contiguous());
  const std::span<const float> floats = floats_of(*owner);
  return {DType::kF32, Shape(owner->sizes().begin(), owner->sizes().end()), Bytes::wrap(owner, bytes_of(floats))};
}

KeptTensor kept_tensor_of(const at::Tensor& values, const Place& place) {
  const auto owner = std::make_shared<at::Tensor>(values.detach());
  return {{DType::kF32, Shape(owner->sizes().begin(), owner->sizes().end()),
           Bytes::wrap(owner, bytes_of(floats_of(*owner)))},
          place};
}

at::Tensor ids_of(const HostTensor& tokens) {
  at::Tensor ids = at::empty(tokens.shape, at::TensorOptions().dtype(at::kLong));
  auto* values = static_cast<std::int64_t*>(ids.data_ptr());
  for (std::size_t i = 0; i < static_cast<std::size_t>(ids.numel()); ++i)
    values[i] = id_at(tokens.bytes, tokens.dtype, i);
  return ids;
}

namespace {

// from_blob takes a mutable pointer; nothing writes to it.
at::Tensor floats_on(const void* memory, at::IntArrayRef shape, const c10::Device& device) {
  const at::Tensor host = at::from_blob(const_cast<void*>(memory), shape, at::TensorOptions().dtype(at::kFloat));
  return device.is_cpu() ? host : host.to(device);
}

}  // namespace

at::Tensor on_device(const KeptTensor& kept, const c10::Device& device) {
  const HostTensor& tensor = kept.tensor;
  if (kept.place.on_host()) return floats_on(tensor.bytes.data(), tensor.shape, device);
  void* const memory = const_cast<std::uint8_t*>(tensor.bytes.data());
  return at::from_blob(memory, tensor.shape, at::TensorOptions().dtype(at::kFloat).device(device));
}

at::Tensor on_device(std::span<const float> values, const c10::Device& device) {
  return floats_on(values.data(), {static_cast<std::int64_t>(values.size())}, device);
}

}  // namespace shoal
