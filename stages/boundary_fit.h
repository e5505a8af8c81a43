#pragma once
// The halves of a cut, fitted to what a model that was trained without one sends over its place: what k directions do
// not carry is given back as far as text token and place alone tell it. Sums are in double, on the host. Thread: one.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/tensor_view.h"
#include "stages/stage_spec.h"

namespace shoal {

// What a text made of the layers in front of a cut, sequence by sequence.
struct SentText {
  std::vector<HostTensor> tokens;       // (1, T + 1) ids
  std::vector<HostTensor> activations;  // (1, T, d) kF32; undefined in front of the first layer
};

// By name, those of down_of(model, layer - 1) and up_of(model, layer).
using CutParameters = std::map<std::string, std::vector<float>>;

// With S the sum of x x^T, x without its place's mean, and B the part of it that the means of tokens give back: U (d,
// k) and P (d, r), orthonormal beside each other, such that tr(U^T S U) + tr(P^T B P) is large, in turns from three
// beginnings; where r = d, U of S - B alone. D = U^T, E P^T and Q are the means of token and place outside of U. A mean
// of n is (sum + c mean) / (n + c), c the variance within groups over that between them (Buehlmann's credibility,
// 1967): a token that was not seen has the mean of all. Takes thirteen eigensystems of d x d. ERRORS: kTooLarge
// (memory), kIo (the tensor library).
Result<CutParameters> fit_cut(const ModelSpec& model, std::uint32_t layer, const SentText& sent);

// Puts what the next layer reads behind the cut in the place of `sent.activations`. Returns which part of their
// variance it kept: 1 - |x - y|^2 / |x - mean x|^2. ERRORS: fit_cut()'s.
Result<double> cross_cut(const ModelSpec& model, std::uint32_t layer, const CutParameters& cut, SentText& sent);

// Bytes of the host that both take at most beside what they are given, `tokens` of them.
std::uint64_t fit_bytes(const ModelSpec& model, std::uint64_t tokens);

}  // namespace shoal
