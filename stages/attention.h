#pragma once
// What every family's attention ends in. Thread: any; exceptions of the tensor library pass through.
#include "stages/torch_family.h"

namespace shoal {

// Causal scaled dot-product attention (Vaswani et al. 2017, section 3.2.1). q (B, H, T, w), k and v (B, K, T, w) with K
// a divisor of H: each K serves H / K neighbours (Ainslie et al. 2023). With a cache its places come in front, and k
// and v are appended to it. -> (B * T, H * w)
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, LayerCache* cache);

}  // namespace shoal
