#include "common/tensor_view.h"

namespace shoal {

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::string text_of(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + ")";
}

HostTensor make_host_tensor(DType dtype, Shape shape, Buffer buffer) {
  SHOAL_CHECK_EQ(buffer.size(), static_cast<std::size_t>(element_count(shape)) * size_of(dtype));
  return {dtype, std::move(shape), std::move(buffer).freeze()};
}

}  // namespace shoal
