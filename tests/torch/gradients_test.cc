// The layers' derivatives against central differences in double, of each family and what it can have.
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <gtest/gtest.h>

#include "stages/chunked_loss.h"
#include "stages/torch_family.h"
#include "tests/torch/differences.h"
#include "tests/torch/family_models.h"

namespace shoal {
namespace {

constexpr std::int64_t kB = 2, kT = 5, kD = 8, kV = kIds;

at::Tensor loss(const at::Tensor& rows, const at::Tensor& head, const at::Tensor& targets) {
  at::Tensor losses;
  return chunked_cross_entropy(rows, {.values = &head, .product = &head}, targets, 3, losses);
}

class GradientsTest : public ::testing::TestWithParam<FamilyModel> {
 protected:
  const ModelSpec model = GetParam().of({.layers = 2, .dim = kD, .heads = 2, .positions = kT, .vocabulary = kV});
  const TorchFamily& layers = layers_of(model.family);
  const TorchModule embed = layers.module(model, 0), layer = layers.module(model, 1);
  const TokenPlaces places = layers.places(model, 0, kT, at::TensorOptions().dtype(at::kDouble));
};

TEST_P(GradientsTest, Embedding) {
  Rng rng(1);
  const at::Tensor tokens = draw_tokens(rng, {kB, kT});
  const std::vector<at::Tensor> tables = draw_part(rng, model, 0);
  expect_gradients(tables, [&] { return weighed(embed(model, tokens, places, plain_weights(tables), nullptr)); });
}

TEST_P(GradientsTest, DecoderLayer) {
  Rng rng(2);
  const at::Tensor x = draw(rng, {kB, kT, kD}, 0, 1);
  const std::vector<at::Tensor> weights = draw_part(rng, model, 1);
  std::vector<at::Tensor> inputs{x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  expect_gradients(inputs, [&] { return weighed(layer(model, x, places, plain_weights(weights), nullptr)); });
}

TEST_P(GradientsTest, AdaptersOfADecoderLayer) {
  Rng rng(7);
  ModelSpec adapted = model;
  adapted.lora_rank = 2;
  const at::Tensor x = draw(rng, {kB, kT, kD}, 0, 1);
  std::vector<at::Tensor> base = draw_part(rng, model, 1), adapters;
  for (const ParameterSpec& parameter : parameters_of(split_model(adapted, 1)->front()))
    if (parameter.part == 1) adapters.push_back(draw(rng, parameter.shape, 0, 0.4));
  std::vector<Weight> weights = plain_weights(base);
  const StageSpec spec = split_model(adapted, 1)->front();
  const auto adapter = adapter_places(spec);
  const auto trained = parameters_of(spec), matrices = parameters_of(base_of(spec));
  for (std::size_t i = 0, place = 0; i < matrices.size(); ++i) {
    if (matrices[i].part != 1) continue;
    Weight& weight = weights[place++];
    if (!adapter[i]) continue;
    weight.down = &adapters[adapter[i]->down];  // layer 0 has the first of them
    weight.up = &adapters[adapter[i]->up];
    weight.scale = 1.5f;
  }
  std::vector<at::Tensor> inputs{x};
  inputs.insert(inputs.end(), adapters.begin(), adapters.end());
  expect_gradients(inputs, [&] { return weighed(layer(model, x, places, weights, nullptr)); });
}

TEST_P(GradientsTest, HeadAndLoss) {
  Rng rng(3);
  std::vector<at::Tensor> inputs = draw_part(rng, model, 1 + model.layers);
  const std::vector<at::Tensor> weights = inputs;
  const at::Tensor x = draw(rng, {kB, kT, kD}, 0, 1);
  inputs.push_back(x);
  const at::Tensor targets = draw_tokens(rng, {kB * kT});
  expect_gradients(inputs,
                   [&] { return loss(layers.final_norm(model, x, plain_weights(weights)), weights.back(), targets); });
}

TEST_P(GradientsTest, TheWholeModel) {
  Rng rng(4);
  const at::Tensor tokens = draw_tokens(rng, {kB, kT}), targets = draw_tokens(rng, {kB * kT});
  std::vector<std::vector<at::Tensor>> parts;
  std::vector<at::Tensor> inputs;
  for (std::uint32_t part = 0; part <= 1 + model.layers; ++part) {
    parts.push_back(draw_part(rng, model, part));
    inputs.insert(inputs.end(), parts.back().begin(), parts.back().end());
  }
  expect_gradients(inputs, [&] {
    at::Tensor x = embed(model, tokens, places, plain_weights(parts[0]), nullptr);
    for (std::uint32_t part = 1; part < 1 + model.layers; ++part)
      x = layer(model, x, places, plain_weights(parts[part]), nullptr);
    return loss(layers.final_norm(model, x, plain_weights(parts.back())), parts.back().back(), targets);
  });
}

// Position t must not see what follows it.
TEST_P(GradientsTest, AttentionIsCausal) {
  Rng rng(5);
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> weights = draw_part(rng, model, 1);
  const at::Tensor x = draw(rng, {1, kT, kD}, 0, 1), before = layer(model, x, places, plain_weights(weights), nullptr);
  at::Tensor changed = x.clone();
  changed.select(1, 3).select(1, 0).add_(1.0);  // one element: the norm takes a shift of all out
  const at::Tensor difference = layer(model, changed, places, plain_weights(weights), nullptr).sub(before).abs();
  EXPECT_EQ(difference.narrow(1, 0, 3).max().item<double>(), 0);
  EXPECT_GT(difference.narrow(1, 3, 1).max().item<double>(), 0.1);
  EXPECT_GT(difference.narrow(1, 4, 1).max().item<double>(), 1e-6);
}

// A text that comes in pieces has the outputs of the whole.
TEST_P(GradientsTest, CachedPlacesEqualTheWhole) {
  Rng rng(6);
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> table = draw_part(rng, model, 0), weights = draw_part(rng, model, 1);
  const at::Tensor tokens = draw_tokens(rng, {1, kT});
  const at::Tensor whole = layer(model, embed(model, tokens, places, plain_weights(table), nullptr), places,
                                 plain_weights(weights), nullptr);
  for (const std::vector<std::int64_t>& pieces : {std::vector<std::int64_t>{2, 1, 2}, {1, 1, 1, 1, 1}, {5}, {1, 4}}) {
    LayerCache cache;
    std::int64_t first = 0;
    for (const std::int64_t count : pieces) {
      const TokenPlaces some = layers.places(model, first, count, at::TensorOptions().dtype(at::kDouble));
      const at::Tensor x = embed(model, tokens.narrow(1, first, count), some, plain_weights(table), nullptr);
      const at::Tensor out = layer(model, x, some, plain_weights(weights), &cache);
      EXPECT_LT(out.sub(whole.narrow(1, first, count)).abs().max().item<double>(), 1e-12);
      first += count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GradientsTest, ::testing::ValuesIn(family_models()), FamilyModel::name_of);

// Loss and gradients of pieces are those of all rows at once.
TEST(ChunkedLossTest, EqualsCrossEntropyOfAllRows) {
  Rng rng(7);
  constexpr std::int64_t kRows = 37;
  const at::Tensor rows = draw(rng, {kRows, kD}, 0, 1), head = draw(rng, {kV, kD}, 0, 0.7);
  const at::Tensor targets = draw_tokens(rng, {kRows});
  const at::Tensor all = at::cross_entropy_loss(rows.matmul(head.t()), targets, {}, at::Reduction::Sum);
  const std::vector<at::Tensor> wanted = torch::autograd::grad({all}, {rows, head});
  for (const std::int64_t piece : {1, 5, 36, 37, 64}) {
    at::Tensor losses, again;
    const Weight weight{.values = &head, .product = &head};
    const at::Tensor made = chunked_cross_entropy(rows, weight, targets, piece, losses);
    EXPECT_NEAR(made.item<double>(), all.item<double>(), 1e-12 * all.item<double>());
    const std::vector<at::Tensor> gradients = torch::autograd::grad({made}, {rows, head});
    for (std::size_t i = 0; i < 2; ++i) EXPECT_LT(gradients[i].sub(wanted[i]).abs().max().item<double>(), 1e-12) << i;
    const at::NoGradGuard no_grad;
    (void)chunked_cross_entropy(rows, weight, targets, piece, again);
    EXPECT_TRUE(again.equal(losses));
  }
}

}  // namespace
}  // namespace shoal
