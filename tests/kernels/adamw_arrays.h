#pragma once
// Arrays of AdamW that every variant of its kernel is fed, and the rates of a step.
#include <utility>

#include "kernels/adamw.h"
#include "tests/kernels/tile_inputs.h"

namespace shoal {

struct AdamWInput {
  std::vector<float> parameters, gradient_sum, moment1, moment2, shift;
};

// Values as in training, and some of any bits: NaN, infinities and subnormals among them.
inline AdamWInput adamw_input(std::size_t count, std::uint64_t seed) {
  AdamWInput input{normal_values(count, 1.0f, seed), normal_values(count, 30.0f, seed + 1),
                   normal_values(count, 0.1f, seed + 2), normal_values(count, 0.1f, seed + 3),
                   normal_values(count, 0.01f, seed + 4)};
  for (float& value : input.moment2) value *= value;
  std::vector<float>* arrays[] = {&input.parameters, &input.gradient_sum, &input.moment1, &input.moment2, &input.shift};
  for (std::size_t which = 0; which < std::size(arrays); ++which) {
    const std::vector<float> any = any_bits(count, false, seed + 5 + which);
    for (std::size_t i = which; i < count; i += 29) (*arrays[which])[i] = any[i];
  }
  for (std::size_t i = 0; i < count; i += 37) input.gradient_sum[i] = input.moment1[i] = i % 2 == 0 ? 0.0f : -0.0f;
  return input;
}

struct AdamWOutput {
  std::vector<float> parameters, moment1, moment2;
  std::vector<std::uint16_t> halves;
  explicit AdamWOutput(std::size_t count) : parameters(count), moment1(count), moment2(count), halves(count) {}
};

inline AdamWFlat flat_of(const AdamWInput& in, AdamWOutput& out, bool with_shift, bool with_halves) {
  AdamWFlat flat;
  flat.parameters = in.parameters.data();
  flat.gradient_sum = in.gradient_sum.data();
  flat.moment1 = in.moment1.data();
  flat.moment2 = in.moment2.data();
  flat.shift = with_shift ? in.shift.data() : nullptr;
  flat.parameters_out = out.parameters.data();
  flat.moment1_out = out.moment1.data();
  flat.moment2_out = out.moment2.data();
  flat.halves = with_halves ? out.halves.data() : nullptr;
  return flat;
}

// As at step 3, clipped; with looking ahead or without.
inline AdamWRates rates_of(bool gives_back) {
  AdamWRates rates;
  rates.gradient_scale = 0.0123f;
  rates.beta1 = 0.9f;
  rates.beta2 = 0.95f;
  rates.rate = gives_back ? 2.2e-2f : 1.1e-2f;
  rates.rate_before = gives_back ? 1.58e-2f : 0.0f;
  rates.root_scale = 2.648f;
  rates.eps = 1e-8f;
  return rates;
}
inline constexpr float kKeep = 0.9997f;

}  // namespace shoal
