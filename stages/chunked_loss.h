#pragma once
// Head and cross entropy in pieces of rows, so that the logits of all tokens never stand in memory at once (Hsu et al.
// 2024, arXiv 2410.10989: the gradient is made beside the loss, piece by piece). Any device and floating type. Thread:
// any; exceptions of the tensor library pass through.
#include <cstdint>

namespace at {
class Tensor;
}

namespace shoal {

// The sum of the losses of rows (N, d) under head (V, d) for targets (N), int64 below V: differentiable in rows and
// head when gradients are on. `losses` becomes the cross entropy of each row, (N), in nats, without a graph. `piece`
// rows at a time, at least 1.
at::Tensor chunked_cross_entropy(const at::Tensor& rows, const at::Tensor& head, const at::Tensor& targets,
                                 std::int64_t piece, at::Tensor& losses);

}  // namespace shoal
