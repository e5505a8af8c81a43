#pragma once
// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): a step of a matrix has the size of its largest extents
// in every direction, and not in those alone that the gradient prefers. For the matrices inside the layers; embeddings,
// head, norms and biases take AdamW's step. Pure functions; borrow everything. The result does not depend on how the
// work is cut among threads: every sum goes in the order of its index.
//
//   g = gradient_scale * sum;  m = beta1 m' + (1 - beta1) g;  O = orthogonalise(beta1 m + (1 - beta1) g)
//   p = keep * p - 0.2 sqrt(max(rows, cols)) * lr * ((1 + c) O - c' O') [+ shift]
// with c and c' the updates that this step and the one before look ahead, as AdamW's (stages/adamw.h), and O' the
// orthogonalised matrix of the step before. The factor gives O the root mean square that AdamW's updates have, so that
// one learning rate and one decay serve both (Liu et al. 2025, arXiv 2502.16982, equation 4). The first moment is m;
// the second moment's place holds O, in zeroed moments 0: nothing is given back then.
#include <cstddef>
#include <span>

#include "stages/step_arrays.h"

namespace shoal {

// Newton and Schulz's iteration, five times a x + (b A + c A A) x with A = x x^T, in fp32: of U S V^T it makes nearly
// U V^T, singular values between about 0.7 and 1.2 (less where one was under 0.0015 of the norm).
// (rows, cols) row-major, in place. Zeros stay zeros.
inline constexpr float kNewtonSchulz[] = {3.4445f, -4.7750f, 2.0315f};
inline constexpr int kNewtonSchulzSteps = 5;
inline constexpr float kNewtonSchulzFloor = 1e-7f;  // added to the norm that x is divided by
void orthogonalise(std::span<float> matrix, std::size_t rows, std::size_t cols, const ParallelFor& parallel);

// What the update is multiplied by.
float muon_scale(std::size_t rows, std::size_t cols);

// The step of one tensor. REQUIRES: parameter.matrices > 0; it lies inside the arrays. Needs about five times
// the memory of its largest matrix meanwhile.
void muon_apply(const ParameterSpec& parameter, const AdamWFactors& factors, const AdamWArrays& arrays,
                const ParallelFor& parallel);

}  // namespace shoal
