#pragma once
// Derivatives against central differences in double: small random tensors, and the comparison.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>

#include "common/rng.h"
#include "stages/stage_spec.h"

namespace shoal {

inline constexpr std::int64_t kIds = 11;  // of a vocabulary

inline at::Tensor draw(Rng& rng, at::IntArrayRef shape, double mean, double scale) {
  at::Tensor values = at::empty(shape, at::TensorOptions().dtype(at::kDouble));
  auto* data = static_cast<double*>(values.data_ptr());
  for (std::int64_t i = 0; i < values.numel(); ++i) data[i] = mean + scale * rng.normal();
  return values.requires_grad_(true);
}

inline at::Tensor draw_tokens(Rng& rng, at::IntArrayRef shape) {
  at::Tensor values = at::empty(shape, at::TensorOptions().dtype(at::kLong));
  auto* data = static_cast<std::int64_t*>(values.data_ptr());
  for (std::int64_t i = 0; i < values.numel(); ++i) data[i] = static_cast<std::int64_t>(rng.below(kIds));
  return values;
}

inline std::vector<at::Tensor> draw_part(Rng& rng, const ModelSpec& model, std::uint32_t part) {
  std::vector<at::Tensor> weights;
  for (const ParameterSpec& parameter : parameters_of(split_model(model, 1)->front())) {
    if (parameter.part != part) continue;
    const double scale = parameter.matrices > 0 ? 0.4 : parameter.decays ? 0.7 : 0.2;
    weights.push_back(draw(rng, parameter.shape, parameter.constant, scale));
  }
  return weights;
}

// Every element of every input: |analytic - numeric| <= 1e-7 * (1 + |numeric|), with steps of 2e-6.
inline void expect_gradients(const std::vector<at::Tensor>& inputs, const std::function<at::Tensor()>& loss_of) {
  const std::vector<at::Tensor> analytic = torch::autograd::grad({loss_of()}, inputs);
  const at::NoGradGuard no_grad;
  std::size_t nonzero = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    auto* values = static_cast<double*>(inputs[k].data_ptr());
    const at::Tensor gradient = analytic[k].contiguous();
    const auto* expected = static_cast<const double*>(gradient.const_data_ptr());
    for (std::int64_t i = 0; i < inputs[k].numel(); ++i) {
      const double before = values[i], h = 2e-6;
      values[i] = before + h;
      const double above = loss_of().item<double>();
      values[i] = before - h;
      const double below = loss_of().item<double>();
      values[i] = before;
      const double numeric = (above - below) / (2 * h);
      ASSERT_NEAR(expected[i], numeric, 1e-7 * (1 + std::abs(numeric))) << "input " << k << " element " << i;
      nonzero += std::abs(numeric) > 1e-6 ? 1 : 0;
    }
  }
  EXPECT_GT(nonzero, 10u) << "the loss depends on its inputs";
}

// A scalar that weighs every element differently, so that no error cancels.
inline at::Tensor weighed(const at::Tensor& values) {
  return values.mul(values.detach().mul(0).add(1).cumsum(-1)).sin().sum();
}

}  // namespace shoal
