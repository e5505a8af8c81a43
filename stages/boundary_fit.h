#pragma once
// The halves of a cut, fitted to what a model that was trained without one sends over its place: what k directions do
// not carry is given back as far as text token and place alone tell it. Thread: one.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/tensor_view.h"
#include "stages/stage_spec.h"

namespace shoal {

struct FittedCut {
  std::map<std::string, std::vector<float>> parameters;  // of down_of(model, layer - 1) and up_of(model, layer)
  double kept = 0;                                       // 1 - |x - y|^2 / |x - mean x|^2
};

// `sent`: what layer - 1 made, (B, T, d) kF32 each, from `tokens`, (B, T + 1) ids each; what the next layer reads of it
// stands there afterwards. Of x about its place's mean q and its token's m: U are the first k principal directions,
// D = U^T; E P^T and Q are m and q outside of them, E P^T by its first r principal directions. A token that was seen n
// times has m = (sum + c mean) / (n + c), c the variance within tokens over that between them (Buehlmann's credibility,
// 1967); one that was not has the mean. Sums over covariances in double, on the host. ERRORS: kTooLarge (memory), kIo
// (the tensor library).
Result<FittedCut> fit_cut(const ModelSpec& model, std::uint32_t layer, std::span<HostTensor> sent,
                          std::span<const HostTensor> tokens);

}  // namespace shoal
