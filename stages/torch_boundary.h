#pragma once
// A part of the model as every pass computes it: in front of and behind a layer stand the halves of the cuts beside it
// (stages/boundary.h). Thread: any; exceptions of the tensor library pass through.
#include "stages/torch_family.h"

namespace shoal {

// What a part, but the head, makes of x: (B, T, d), (B, T, k) behind a cut, and at part 0 the ids. -> (B, T, d), in
// front of a cut (B, T, k). `ids` (B, T) int64 are the tokens at these places, never those that follow them; a part
// behind a cut looks them up. `weights`: the half in front, the layer's, the half behind.
at::Tensor run_part(const ModelSpec& model, std::uint32_t part, const at::Tensor& x, const at::Tensor& ids,
                    const TokenPlaces& places, std::span<const Weight> weights, LayerCache* cache);

}  // namespace shoal
