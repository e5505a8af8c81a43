// Initial parameters. Own distribution code: two machines must start from the same bits, and std::log differs in its
// last bit between CPUs (the C library picks variants with fused multiply-add at run time). Additions, products,
// quotients and square roots do not.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "common/check.h"
#include "common/rng.h"
#include "stages/stage_spec.h"

namespace shoal {
namespace {

// Natural logarithm from exactly rounded operations: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), ln m = 2 atanh((m - 1)
// / (m + 1)). |t| < 0.172, so the first term left out is below 1e-19.
double portable_log(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // exact
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  const double t = (mantissa - 1) / (mantissa + 1);
  const double square = t * t;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * t * sum + exponent * 0.69314718055994531;
}

// Two independent normal draws per accepted point (Marsaglia and Bray 1964, the polar method).
class NormalSource {
 public:
  explicit NormalSource(std::uint64_t seed) : rng_(seed) {}
  double next() {
    if (spare_ready_) {
      spare_ready_ = false;
      return spare_;
    }
    for (;;) {
      const double u = 2 * rng_.uniform() - 1, v = 2 * rng_.uniform() - 1;
      const double s = u * u + v * v;
      if (s >= 1 || s == 0) continue;
      const double factor = std::sqrt(-2 * portable_log(s) / s);
      spare_ = v * factor;
      spare_ready_ = true;
      return u * factor;
    }
  }

 private:
  Rng rng_;
  double spare_ = 0;
  bool spare_ready_ = false;
};

std::uint64_t seed_of(std::uint64_t run_seed, std::string_view tensor) {
  std::uint64_t seed = mix64(run_seed);
  for (const char c : tensor) seed = mix64(seed, static_cast<unsigned char>(c));
  return seed;
}

// As many orthonormal vectors as there are rows or columns, whichever are fewer: normal draws, one vector after the
// other, each without what it has of those before. Twice, since once leaves what rounding made (Giraud et al. 2005).
void write_basis(NormalSource& normal, const Shape& shape, std::span<float> values) {
  const auto rows = static_cast<std::size_t>(shape[0]), columns = static_cast<std::size_t>(shape[1]);
  const std::size_t count = std::min(rows, columns), width = std::max(rows, columns);
  std::vector<std::vector<double>> basis;
  const auto dot = [width](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += a[i] * b[i];
    return sum;
  };
  while (basis.size() < count) {
    std::vector<double> vector(width);
    for (double& value : vector) value = normal.next();
    for (std::size_t i = 0; i < 2 * basis.size(); ++i) {
      const std::vector<double>& before = basis[i % basis.size()];
      const double part = dot(before, vector);
      for (std::size_t j = 0; j < width; ++j) vector[j] -= part * before[j];
    }
    const double length = std::sqrt(dot(vector, vector));
    for (double& value : vector) value /= length;
    for (std::size_t i = 0, at = basis.size(); i < width; ++i)
      values[rows < columns ? at * columns + i : i * columns + at] = static_cast<float>(vector[i]);
    basis.push_back(std::move(vector));
  }
}

void write_first_values(const ParameterSpec& parameter, std::uint64_t seed, std::span<float> values) {
  NormalSource normal(seed_of(seed, parameter.drawn_as.empty() ? parameter.name : parameter.drawn_as));
  const auto width = static_cast<std::size_t>(parameter.shape.back());
  if (parameter.first == FirstValues::kBasis) return write_basis(normal, parameter.shape, values);
  if (parameter.first == FirstValues::kIdentity) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i / width == i % width ? 1.0f : 0.0f;
    return;
  }
  if (parameter.deviation == 0) {
    std::ranges::fill(values, parameter.constant);
    return;
  }
  const std::size_t drawn = parameter.drawn_width == 0 ? width : static_cast<std::size_t>(parameter.drawn_width);
  for (std::size_t row = 0; row < values.size() / width; ++row)
    for (std::size_t i = 0; i < drawn; ++i) {
      const double value = parameter.deviation * normal.next();
      if (i < width) values[row * width + i] = static_cast<float>(value);
    }
}

}  // namespace

void initialise(const StageSpec& spec, std::span<float> arena) {
  SHOAL_CHECK_EQ(arena.size(), parameter_count(spec));
  for (const ParameterSpec& parameter : parameters_of(spec)) {
    const auto values = arena.subspan(parameter.offset, static_cast<std::size_t>(element_count(parameter.shape)));
    write_first_values(parameter, spec.model.seed, values);
  }
}

}  // namespace shoal
