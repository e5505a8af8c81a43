#pragma once
// Head and cross entropy in pieces of rows, so that the logits of all tokens never stand in memory at once (Hsu et al.
// 2024, arXiv 2410.10989: the gradient is made beside the loss, piece by piece). Any device and floating type. Thread:
// any; exceptions of the tensor library pass through.
#include <cstdint>

#include "stages/torch_weights.h"

namespace shoal {

// The sum of the losses of rows (N, d) under head (V, d) for targets (N), int64 below V: differentiable in rows and
// the head's values when gradients are on; multiplied is what its products read. `losses` becomes the cross entropy of
// each row, (N), in nats, without a graph. `piece` rows at a time, at least 1.
at::Tensor chunked_cross_entropy(const at::Tensor& rows, const Weight& head, const at::Tensor& targets,
                                 std::int64_t piece, at::Tensor& losses);

}  // namespace shoal
