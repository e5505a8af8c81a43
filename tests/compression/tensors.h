#pragma once
// Tensors and bytes for the codec tests.
#include <cstring>
#include <vector>

#include "common/rng.h"
#include "compression/codec.h"
#include "compression/frame.h"

namespace shoal {

inline HostTensor tensor_of(Shape shape, const std::vector<float>& values) {
  Buffer buffer(values.size() * sizeof(float));
  std::memcpy(buffer.data(), values.data(), buffer.size());
  return make_host_tensor(DType::kF32, std::move(shape), std::move(buffer));
}

inline HostTensor normal_tensor(Shape shape, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  for (float& value : values) value = static_cast<float>(rng.normal());
  return tensor_of(std::move(shape), values);
}

// Any bytes as a tensor of any type.
inline HostTensor bytes_tensor(DType dtype, Shape shape, std::uint64_t seed) {
  Rng rng(seed);
  Buffer buffer(static_cast<std::size_t>(element_count(shape)) * size_of(dtype));
  for (std::uint8_t& byte : buffer.view()) byte = static_cast<std::uint8_t>(rng.next());
  return make_host_tensor(dtype, std::move(shape), std::move(buffer));
}

inline std::vector<std::uint8_t> bytes_in(ByteView view) { return {view.begin(), view.end()}; }

// A copy whose checksums fit its contents again, so that a change is judged by the rules behind them.
inline std::vector<std::uint8_t> resealed(std::vector<std::uint8_t> frame) {
  const std::size_t header_bytes = frame[10] + 256u * frame[11];
  const ByteView all(frame);
  const std::uint32_t payload_sum = crc32c(all.subspan(header_bytes));
  std::memcpy(&frame[24], &payload_sum, 4);
  std::memset(&frame[12], 0, 4);
  const std::uint32_t header_sum = crc32c(all.first(header_bytes));
  std::memcpy(&frame[12], &header_sum, 4);
  return frame;
}

}  // namespace shoal
