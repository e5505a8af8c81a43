#pragma once
// Head and cross entropy in pieces of rows, so that the logits of all tokens never stand in memory at once (Hsu et al.
// 2024, arXiv 2410.10989: the gradient is made beside the loss, piece by piece). Any device and floating type. Thread:
// any; exceptions of the tensor library pass through.
#include <ATen/core/Tensor.h>

namespace shoal {

struct ChunkedLoss {
  at::Tensor losses;  // (N), cross entropy of each row in nats; without a graph
  at::Tensor sum;     // of all; differentiable in rows and head when gradients are on
};
// rows (N, d), head (V, d), targets (N) int64 below V; `piece` rows at a time, at least 1.
ChunkedLoss chunked_cross_entropy(const at::Tensor& rows, const at::Tensor& head, const at::Tensor& targets,
                                  std::int64_t piece);

}  // namespace shoal
