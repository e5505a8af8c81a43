#pragma once
// Shapes and host tensors without torch. Row-major, contiguous.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/byte_codec.h"
#include "common/bytes.h"
#include "common/check.h"

namespace shoal {

enum class DType : std::uint8_t { kF32 = 0, kU8 = 1, kU16 = 2, kI32 = 3, kF64 = 4, kU32 = 5 };
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kU8:
      return 1;
    case DType::kU16:
      return 2;
    case DType::kF64:
      return 8;
  }
  return 0;
}

// Text tokens are ids of 8, 16 or 32 bits, little-endian.
constexpr bool holds_ids(DType dtype) { return dtype == DType::kU8 || dtype == DType::kU16 || dtype == DType::kU32; }
// REQUIRES: holds_ids(dtype), and `ids` has more than i of them.
inline std::uint32_t id_at(ByteView ids, DType dtype, std::size_t i) {
  if (dtype == DType::kU8) return ids[i];
  return dtype == DType::kU16 ? get_le<std::uint16_t>(ids, 2 * i) : get_le<std::uint32_t>(ids, 4 * i);
}

using Shape = std::vector<std::int64_t>;         // every extent >= 1
std::int64_t element_count(const Shape& shape);  // product; 1 for a scalar
std::string text_of(const Shape& shape);         // "(4, 256, 256)"

// Non-owning. Lives only while its memory does.
struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  ByteView bytes;  // element_count(shape) * size_of(dtype)
  std::span<const float> f32() const {
    SHOAL_CHECK(dtype == DType::kF32);
    return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4};
  }
};

// Owning and immutable; copies share.
struct HostTensor {
  DType dtype = DType::kF32;
  Shape shape;
  Bytes bytes;  // 64-byte aligned when made by make_host_tensor
  TensorView view() const { return {dtype, shape, bytes.view()}; }
  std::span<const float> f32() const { return view().f32(); }
  bool defined() const { return !bytes.empty(); }
};
// REQUIRES: buffer.size() == element_count(shape) * size_of(dtype).
HostTensor make_host_tensor(DType dtype, Shape shape, Buffer buffer);

}  // namespace shoal
