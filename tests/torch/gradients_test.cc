// The layers' derivatives against central differences in double.
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>

#include "common/rng.h"
#include "stages/torch_family.h"

namespace shoal {
namespace {

constexpr std::int64_t kB = 2, kT = 5, kD = 8, kV = 11;
constexpr ModelSpec kModel{.layers = 2, .dim = kD, .heads = 2, .positions = kT, .vocabulary = kV};
constexpr const TorchFamily& kLayers = kGpt2Layers;

at::Tensor draw(Rng& rng, at::IntArrayRef shape, double mean, double scale) {
  at::Tensor values = at::empty(shape, at::TensorOptions().dtype(at::kDouble));
  auto* data = static_cast<double*>(values.data_ptr());
  for (std::int64_t i = 0; i < values.numel(); ++i) data[i] = mean + scale * rng.normal();
  return values.requires_grad_(true);
}

at::Tensor draw_tokens(Rng& rng, at::IntArrayRef shape) {
  at::Tensor values = at::empty(shape, at::TensorOptions().dtype(at::kLong));
  auto* data = static_cast<std::int64_t*>(values.data_ptr());
  for (std::int64_t i = 0; i < values.numel(); ++i) data[i] = static_cast<std::int64_t>(rng.below(kV));
  return values;
}

std::vector<at::Tensor> draw_layer(Rng& rng) {
  std::vector<at::Tensor> weights;
  const std::int64_t shapes[12][2] = {{kD, 0}, {kD, 0}, {kD, 3 * kD}, {3 * kD, 0}, {kD, kD},     {kD, 0},
                                      {kD, 0}, {kD, 0}, {kD, 4 * kD}, {4 * kD, 0}, {4 * kD, kD}, {kD, 0}};
  for (std::size_t i = 0; i < 12; ++i) {
    const bool norm_weight = i == 0 || i == 6;
    if (shapes[i][1] == 0) {
      weights.push_back(draw(rng, {shapes[i][0]}, norm_weight ? 1 : 0, 0.2));
    } else {
      weights.push_back(draw(rng, {shapes[i][0], shapes[i][1]}, 0, 0.4));
    }
  }
  return weights;
}

// Every element of every input: |analytic - numeric| <= 1e-7 * (1 + |numeric|), with steps of 1e-5.
void expect_gradients(const std::vector<at::Tensor>& inputs, const std::function<at::Tensor()>& loss_of) {
  const std::vector<at::Tensor> analytic = torch::autograd::grad({loss_of()}, inputs);
  const at::NoGradGuard no_grad;
  std::size_t nonzero = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    auto* values = static_cast<double*>(inputs[k].data_ptr());
    const at::Tensor gradient = analytic[k].contiguous();
    const auto* expected = static_cast<const double*>(gradient.const_data_ptr());
    for (std::int64_t i = 0; i < inputs[k].numel(); ++i) {
      const double before = values[i], h = 1e-5;
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
at::Tensor weighed(const at::Tensor& values) {
  return values.mul(values.detach().mul(0).add(1).cumsum(-1)).sin().sum();
}

at::Tensor loss(const at::Tensor& logits, const at::Tensor& targets) {
  return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum);
}

TEST(GradientsTest, Embedding) {
  Rng rng(1);
  const at::Tensor tokens = draw_tokens(rng, {kB, kT});
  const std::vector<at::Tensor> tables{draw(rng, {kV, kD}, 0, 1), draw(rng, {kT, kD}, 0, 1)};
  expect_gradients(tables, [&] { return weighed(kLayers.embed(kModel, tokens, tables)); });
}

TEST(GradientsTest, DecoderLayer) {
  Rng rng(2);
  const at::Tensor x = draw(rng, {kB, kT, kD}, 0, 1);
  const std::vector<at::Tensor> weights = draw_layer(rng);
  std::vector<at::Tensor> inputs{x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  expect_gradients(inputs, [&] { return weighed(kLayers.layer(kModel, x, weights)); });
}

TEST(GradientsTest, HeadAndLoss) {
  Rng rng(3);
  const std::vector<at::Tensor> all{draw(rng, {kB, kT, kD}, 0, 1), draw(rng, {kD}, 1, 0.2), draw(rng, {kD}, 0, 0.2),
                                    draw(rng, {kV, kD}, 0, 0.5)};
  const at::Tensor targets = draw_tokens(rng, {kB * kT});
  expect_gradients(all, [&] { return loss(kLayers.logits(kModel, all[0], std::span(all).subspan(1)), targets); });
}

TEST(GradientsTest, TheWholeModel) {
  Rng rng(4);
  const at::Tensor tokens = draw_tokens(rng, {kB, kT}), targets = draw_tokens(rng, {kB * kT});
  std::vector<at::Tensor> inputs{draw(rng, {kV, kD}, 0, 1), draw(rng, {kT, kD}, 0, 1)};
  for (int layer = 0; layer < 2; ++layer) {
    for (const at::Tensor& weight : draw_layer(rng)) inputs.push_back(weight);
  }
  inputs.push_back(draw(rng, {kD}, 1, 0.2));
  inputs.push_back(draw(rng, {kD}, 0, 0.2));
  inputs.push_back(draw(rng, {kV, kD}, 0, 0.5));
  const std::span<const at::Tensor> all = inputs;
  expect_gradients(inputs, [&] {
    at::Tensor x = kLayers.embed(kModel, tokens, all.first(2));
    x = kLayers.layer(kModel, x, all.subspan(2, 12));
    x = kLayers.layer(kModel, x, all.subspan(14, 12));
    return loss(kLayers.logits(kModel, x, all.subspan(26)), targets);
  });
}

// Position t must not see what follows it.
TEST(LayersTest, AttentionIsCausal) {
  Rng rng(5);
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> weights = draw_layer(rng);
  const at::Tensor x = draw(rng, {1, kT, kD}, 0, 1), before = kLayers.layer(kModel, x, weights);
  at::Tensor changed = x.clone();
  changed.select(1, 3).select(1, 0).add_(1.0);  // one element: the norm takes a shift of all out
  const at::Tensor difference = kLayers.layer(kModel, changed, weights).sub(before).abs();
  EXPECT_EQ(difference.narrow(1, 0, 3).max().item<double>(), 0);
  EXPECT_GT(difference.narrow(1, 3, 1).max().item<double>(), 0.1);
  EXPECT_GT(difference.narrow(1, 4, 1).max().item<double>(), 1e-6);
}

}  // namespace
}  // namespace shoal
