#include "stages/muon.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/check.h"
#include "kernels/norm.h"

namespace shoal {
namespace {

constexpr std::size_t kRows = 8;  // of a product made at a time: each row of the right factor is read once for them

// out (n, m) = left (n, inner) right (inner, m). Each element is summed in the order of the inner index.
void multiply(const std::vector<float>& left, const std::vector<float>& right, std::vector<float>& out,
              std::size_t inner, std::size_t m, const ParallelFor& parallel) {
  parallel(out.size() / m, kRows, [&](std::size_t first, std::size_t last) {
    for (std::size_t begin = first; begin < last; begin += kRows) {
      const std::size_t end = std::min(begin + kRows, last);
      std::fill(out.data() + begin * m, out.data() + end * m, 0.0f);
      for (std::size_t k = 0; k < inner; ++k) {
        const float* row = right.data() + k * m;
        for (std::size_t i = begin; i < end; ++i) {
          const float factor = left[i * inner + k];
          float* sums = out.data() + i * m;
#pragma GCC ivdep
          for (std::size_t j = 0; j < m; ++j) sums[j] += factor * row[j];
        }
      }
    }
  });
}

// (rows, cols) of `from` as (cols, rows) in `to`.
void transpose(std::span<const float> from, std::span<float> to, std::size_t rows, std::size_t cols) {
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) to[j * rows + i] = from[i * cols + j];
}

// REQUIRES: rows <= cols.
void iterate(std::vector<float>& x, std::size_t rows, std::size_t cols, const ParallelFor& parallel) {
  const auto norm = static_cast<float>(norm_of(x, parallel));
  for (float& value : x) value /= norm + kNewtonSchulzFloor;
  std::vector<float> other(x.size()), gram(rows * rows), square(rows * rows);
  const float a = kNewtonSchulz[0], b = kNewtonSchulz[1], c = kNewtonSchulz[2];
  for (int step = 0; step < kNewtonSchulzSteps; ++step) {
    transpose(x, other, rows, cols);
    multiply(x, other, gram, cols, rows, parallel);
    multiply(gram, gram, square, rows, rows, parallel);
    for (std::size_t i = 0; i < gram.size(); ++i) gram[i] = b * gram[i] + c * square[i];
    multiply(gram, x, other, rows, cols, parallel);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = a * x[i] + other[i];
  }
}

}  // namespace

void orthogonalise(std::span<float> matrix, std::size_t rows, std::size_t cols, const ParallelFor& parallel) {
  SHOAL_CHECK_EQ(matrix.size(), rows * cols);
  std::vector<float> x(matrix.size());
  if (rows <= cols) {
    std::copy(matrix.begin(), matrix.end(), x.begin());
    iterate(x, rows, cols, parallel);
    std::copy(x.begin(), x.end(), matrix.begin());
  } else {
    transpose(matrix, x, rows, cols);
    iterate(x, cols, rows, parallel);
    transpose(x, matrix, cols, rows);
  }
}

float muon_scale(std::size_t rows, std::size_t cols) {
  return 0.2f * std::sqrt(static_cast<float>(std::max(rows, cols)));
}

void muon_apply(const ParameterSpec& parameter, const AdamWFactors& f, const AdamWArrays& a,
                const ParallelFor& parallel) {
  SHOAL_CHECK(parameter.matrices > 0);
  const auto rows = static_cast<std::size_t>(parameter.shape[0]), all = static_cast<std::size_t>(parameter.shape[1]);
  const std::size_t matrices = parameter.matrices, cols = all / matrices;
  SHOAL_CHECK_EQ(cols * matrices, all);
  const float scale = muon_scale(rows, cols), keep = parameter.decays ? f.keep : 1.0f;
  const float rate = scale * f.matrix_rate, rate_before = scale * f.matrix_rate_before;
  std::vector<float> update(rows * cols);
  for (std::size_t matrix = 0; matrix < matrices; ++matrix) {
    const auto at = [&](std::size_t row) { return parameter.offset + row * all + matrix * cols; };
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t col = 0, i = at(row); col < cols; ++col, ++i) {
        const float g = a.gradient_sum[i] * f.gradient_scale;
        const float m = f.beta1 * a.moment1[i] + (1 - f.beta1) * g;
        a.moment1_out[i] = m;
        update[row * cols + col] = f.beta1 * m + (1 - f.beta1) * g;
      }
    }
    orthogonalise(update, rows, cols, parallel);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t col = 0, i = at(row); col < cols; ++col, ++i) {
        const float made = update[row * cols + col], before = a.moment2[i];
        a.moment2_out[i] = made;
        const float stepped = keep * a.parameters[i] - (rate * made - rate_before * before);
        a.parameters_out[i] = a.shift.empty() ? stepped : stepped + a.shift[i];
      }
    }
  }
}

}  // namespace shoal
