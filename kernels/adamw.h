#pragma once
// AdamW over flat arrays, element by element; the rule of one element: kernels/adamw_rule.h.
// Thread-safe: no state. Ownership: borrows everything for the call. Every element depends on those of the same index
// alone, so that the work may be cut anywhere.
#include <cstddef>
#include <cstdint>

namespace shoal {

// The same for all elements of a step. How an optimizer's settings become these: stages/adamw.h.
struct AdamWRates {
  float gradient_scale = 0;       // makes the step's gradient of the sum
  float beta1 = 0, beta2 = 0;     // what the moments keep of themselves
  float rate = 0;                 // of the first moment
  float rate_before = 0;          // of the first moment as it was before the step, which is given back; 0: nothing is
  float root_scale = 0, eps = 0;  // of the second moment's root, and what is added to it
};

// All of one length, fp32 but for `halves`; no alignment is required beyond an element's own. Outputs may be the inputs
// themselves or arrays that do not overlap them. `shift` and `halves` may be null.
struct AdamWFlat {
  const float* parameters = nullptr;
  const float* gradient_sum = nullptr;
  const float* moment1 = nullptr;
  const float* moment2 = nullptr;
  const float* shift = nullptr;
  float* parameters_out = nullptr;
  float* moment1_out = nullptr;
  float* moment2_out = nullptr;
  std::uint16_t* halves = nullptr;  // the new parameters as bf16
};

// Elements [begin, end) of the arrays and no other, which all are multiplied with `keep`.
void adamw_range(const AdamWRates& rates, float keep, const AdamWFlat& arrays, std::size_t begin, std::size_t end);
// The scalar twin: the specification. The one above returns the same bits.
void adamw_range_twin(const AdamWRates& rates, float keep, const AdamWFlat& arrays, std::size_t begin, std::size_t end);

// What the elements up to `end` are multiplied with; a range begins where the one before it ends.
struct AdamWRange {
  std::uint64_t end = 0;
  float keep = 1;
  std::uint32_t skipped = 0;  // 1: nothing is written there (matrices of another rule)
};

// What a step learns from its gradient sum.
inline constexpr double kMeanGradientMax = 1e18;  // its square still fits a float moment
struct StepScale {
  double norm = 0;           // of the mean gradient
  float gradient_scale = 0;  // 1 / targets, times clip_norm / norm where the norm is above it
  std::uint32_t usable = 0;  // 1: finite, and at most kMeanGradientMax
};

}  // namespace shoal
