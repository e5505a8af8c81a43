// A family that no file of the product knows: its row and its layers stand here, and one call makes it known. Its parts
// are unlike each other, and one of them knows nothing of late gradients.
#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/tanh.h>

#include "stages/torch_family.h"
#include "tests/torch/torch_maker.h"

namespace shoal {
namespace {

std::vector<ParameterSpec> embedding(const ModelSpec& model) {
  return {{.name = "table", .shape = {model.vocabulary, model.dim}, .decays = true, .deviation = 0.1}};
}
// Even ones mix by a matrix; odd ones scale.
std::vector<ParameterSpec> layer(const ModelSpec& model, std::uint32_t number) {
  const std::int64_t d = model.dim;
  const std::string prefix = "l." + std::to_string(number) + ".";
  if (number % 2 != 0) return {{.name = prefix + "scale", .shape = {d}, .constant = 1}};
  return {{.name = prefix + "mix.weight", .shape = {d, d}, .decays = true, .deviation = 0.2, .matrices = 1},
          {.name = prefix + "mix.bias", .shape = {d}}};
}
std::vector<ParameterSpec> head(const ModelSpec& model) {
  return {{.name = "lm_head.weight", .shape = {model.vocabulary, model.dim}, .decays = true, .deviation = 0.1}};
}
double cost(const ModelSpec& model) { return 2.0 * model.positions * model.dim * model.dim; }

constinit const FamilyRow kUnlike = {
    .name = "unlike",
    .embedding = embedding,
    .layer = layer,
    .head = head,
    .embedding_cost = cost,
    .layer_cost = cost,
    .head_cost = cost,
    .layer_floats = [](const ModelSpec& model) { return LayerFloats{.wide = model.dim, .narrow = 2ull * model.dim}; },
    .check = [](const ModelSpec&) { return Status::success(); },
    .architecture = [](const ModelSpec&) { return std::vector<std::pair<std::string_view, std::string>>(); },
    .input_first = true};

at::Tensor embed(const ModelSpec&, const at::Tensor& tokens, const TokenPlaces&, std::span<const Weight> w,
                 LayerCache*) {
  return at::embedding(*w[0], tokens);
}
at::Tensor mix(const ModelSpec&, const at::Tensor& x, const TokenPlaces&, std::span<const Weight> w, LayerCache*) {
  const at::Tensor rows = x.view({x.size(0) * x.size(1), x.size(2)});
  return x.add(at::tanh(linear(rows, MatrixForm::kInputFirst, w[0], &w[1])).view_as(x));
}
at::Tensor scale(const ModelSpec&, const at::Tensor& x, const TokenPlaces&, std::span<const Weight> w, LayerCache*) {
  return x.mul(*w[0]);
}

constinit const TorchFamily kUnlikeLayers = {
    .places =
        [](const ModelSpec&, std::int64_t first, std::int64_t, const c10::TensorOptions&) {
          return TokenPlaces{first, {}};
        },
    .module = [](const ModelSpec&, std::uint32_t part) -> TorchModule {
      return part == 0 ? embed : part % 2 != 0 ? mix : scale;
    },
    .final_norm =
        [](const ModelSpec&, const at::Tensor& x, std::span<const Weight>) {
          return x.reshape({x.size(0) * x.size(1), x.size(2)});
        }};

ModelSpec unlike_model() {
  static const ModelFamily family = register_family(kUnlike, kUnlikeLayers);
  ModelSpec model = contract_model();
  model.layers = 4;
  model.family = family;
  return model;
}

TEST(NewFamilyTest, IsKnownByNameAndLearns) {
  const ModelSpec model = unlike_model();
  EXPECT_EQ(family_names()[static_cast<std::size_t>(model.family)], "unlike");
  Chain chain(torch_maker(kHost), model, 2);
  EXPECT_LT(chain.train(40), 0.6);
}

TEST(NewFamilyTest, GivesTheSameBitsPartByPart) {
  const auto by_block = [](const StageSpec& spec) -> std::unique_ptr<StageExecutor> {
    return std::move(*make_torch_executor(spec, {.device = "cpu", .recompute = Recompute::kBlock}));
  };
  Chain whole(torch_maker(kHost), unlike_model(), 2), parts({"", by_block}, unlike_model(), 2);
  for (Chain* each : {&whole, &parts}) each->count(1, kA);
  for (std::size_t k = 0; k < whole.size(); ++k)
    EXPECT_EQ(whole.read(k, ArenaRole::kAccumulatorA), parts.read(k, ArenaRole::kAccumulatorA));
}

}  // namespace
}  // namespace shoal
