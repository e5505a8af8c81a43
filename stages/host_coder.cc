#include "stages/host_coder.h"

namespace shoal {

Result<double> HostCoder::decode(const PlacedSpace& to) {
  if (input_.dtype != to.dtype || input_.shape != to.shape || input_.bytes.size() != to.bytes.size())
    return make_error(ErrorCode::kMalformed,
                      "a tensor of shape " + text_of(input_.shape) + ", expected " + text_of(to.shape) + " of f32");
  SHOAL_TRY(put(input_.bytes.view(), to));
  return root_mean_square(to.filled());
}

Status HostCoder::encode(const PlacedTensor& from) {
  SHOAL_ASSIGN(output_, fetched(from));
  return {};
}

}  // namespace shoal
