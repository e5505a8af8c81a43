#include "stages/host_coder.h"

#include <algorithm>

#include "common/uncleared_memory.h"
#include "kernels/norm.h"

namespace shoal {

Result<double> HostCoder::decode(const PlacedSpace& to) {
  if (input_.dtype != to.dtype || input_.shape != to.shape || input_.bytes.size() != to.bytes.size())
    return make_error(ErrorCode::kMalformed,
                      "a tensor of shape " + text_of(input_.shape) + ", expected " + text_of(to.shape) + " of f32");
  std::ranges::copy(input_.bytes.view(), to.on_host().begin());
  return root_mean_square(to.f32_on_host());
}

Status HostCoder::encode(const PlacedTensor& from) {
  const TensorView& made = from.on_host();
  UnclearedMemory memory(made.bytes.size());
  std::ranges::copy(made.bytes, memory.data());
  output_ = {made.dtype, made.shape, std::move(memory).freeze()};
  return {};
}

}  // namespace shoal
