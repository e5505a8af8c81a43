// Initial parameters. Own distribution code: two machines must start from the same bits, and std::log differs in its
// last bit between CPUs (the C library picks variants with fused multiply-add at run time). Additions, products,
// quotients and square roots do not.
#include <cmath>
#include <string_view>

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

}  // namespace

void initialise(const StageSpec& spec, std::span<float> arena) {
  SHOAL_CHECK_EQ(arena.size(), parameter_count(spec));
  for (const ParameterSpec& parameter : parameters_of(spec)) {
    const auto values = arena.subspan(parameter.offset, static_cast<std::size_t>(element_count(parameter.shape)));
    if (parameter.deviation == 0) {
      for (float& value : values) value = parameter.constant;
      continue;
    }
    NormalSource normal(seed_of(spec.model.seed, parameter.name));
    for (float& value : values) value = static_cast<float>(parameter.deviation * normal.next());
  }
}

}  // namespace shoal
