#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "common/bytes.h"
#include "stages/stage_spec.h"

namespace shoal {
namespace {

ModelSpec model_of(std::uint32_t layers, std::uint32_t dim = 32, std::uint32_t vocabulary = 64) {
  return {.layers = layers, .dim = dim, .heads = 4, .positions = 16, .vocabulary = vocabulary, .seed = 11};
}

TEST(StageSpecTest, TheWholeModelHasGpt2sTensors) {
  const std::vector<ParameterSpec> list = parameters_of(split_model(model_of(2), 1)->front());
  std::map<std::string, Shape> shapes;
  for (const ParameterSpec& parameter : list) shapes[parameter.name] = parameter.shape;
  EXPECT_EQ(list.size(), 2 + 2 * 12 + 3u);
  EXPECT_EQ(shapes["wte.weight"], (Shape{64, 32}));
  EXPECT_EQ(shapes["wpe.weight"], (Shape{16, 32}));
  EXPECT_EQ(shapes["h.1.attn.c_attn.weight"], (Shape{32, 96}));
  EXPECT_EQ(shapes["h.1.attn.c_attn.bias"], (Shape{96}));
  EXPECT_EQ(shapes["h.0.attn.c_proj.weight"], (Shape{32, 32}));
  EXPECT_EQ(shapes["h.0.mlp.c_fc.weight"], (Shape{32, 128}));
  EXPECT_EQ(shapes["h.0.mlp.c_proj.weight"], (Shape{128, 32}));
  EXPECT_EQ(shapes["ln_f.bias"], (Shape{32}));
  EXPECT_EQ(shapes["lm_head.weight"], (Shape{64, 32}));
}

TEST(StageSpecTest, AnySplitConcatenatesToTheWholeAndTheSameNumbers) {
  const ModelSpec model = model_of(5);
  const StageSpec whole = split_model(model, 1)->front();
  std::vector<float> expected(parameter_count(whole));
  initialise(whole, expected);
  for (const std::uint16_t stages : {2, 3, 4, 5}) {
    std::vector<float> joined;
    std::vector<std::string> names;
    const std::vector<StageSpec> specs = *split_model(model, stages);
    for (const StageSpec& spec : specs) {
      std::vector<float> part(parameter_count(spec));
      initialise(spec, part);
      joined.insert(joined.end(), part.begin(), part.end());
      for (const ParameterSpec& parameter : parameters_of(spec)) names.push_back(parameter.name);
    }
    EXPECT_EQ(joined, expected) << stages;
    std::vector<std::string> whole_names;
    for (const ParameterSpec& parameter : parameters_of(whole)) whole_names.push_back(parameter.name);
    EXPECT_EQ(names, whole_names);
  }
}

TEST(StageSpecTest, OffsetsAreDense) {
  const StageSpec spec = split_model(model_of(3), 3)->at(1);
  std::size_t next = 0;
  for (const ParameterSpec& parameter : parameters_of(spec)) {
    EXPECT_EQ(parameter.offset, next) << parameter.name;
    next += static_cast<std::size_t>(element_count(parameter.shape));
  }
  EXPECT_EQ(parameter_count(spec), next);
}

TEST(StageSpecTest, BiasesAndNormsDoNotDecayAndMatricesInsideLayersAreHidden) {
  for (const ParameterSpec& parameter : parameters_of(split_model(model_of(1), 1)->front())) {
    const bool fused = parameter.name.ends_with("attn.c_attn.weight"), in_layer = parameter.name.starts_with("h.");
    EXPECT_EQ(parameter.decays, parameter.shape.size() == 2) << parameter.name;
    EXPECT_EQ(parameter.matrices, parameter.decays && in_layer ? (fused ? 3u : 1u) : 0u) << parameter.name;
  }
}

TEST(SplitTest, LayersOfEqualCostAreSpreadEvenly) {
  const auto specs = *split_model(model_of(8), 4);
  for (const StageSpec& spec : specs) EXPECT_EQ(spec.end_layer - spec.first_layer, 2u);
  EXPECT_EQ(specs.front().first_layer, 0u);
  EXPECT_EQ(specs.back().end_layer, 8u);
}

TEST(SplitTest, AHeavyHeadTakesLayersFromTheLastStage) {
  const auto specs = *split_model(model_of(9, 64, 4096), 3);
  EXPECT_LT(specs[2].end_layer - specs[2].first_layer, 3u);
  EXPECT_EQ(specs[2].end_layer, 9u);
}

// The smallest maximum, found by trying every split.
TEST(SplitTest, NoOtherSplitHasASmallerSlowestStage) {
  for (const std::uint32_t vocabulary : {16u, 700u, 3000u}) {
    const ModelSpec model = model_of(7, 32, vocabulary);
    const double t = model.positions, d = model.dim, layer = 24 * t * d * d + 2 * t * t * d;
    const auto slowest = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
      return std::max({a * layer + 2 * t * d, b * layer, c * layer + 2 * t * d * vocabulary});
    };
    double best = 1e300;
    for (std::uint32_t a = 1; a < 6; ++a) {
      for (std::uint32_t b = 1; a + b < 7; ++b) best = std::min(best, slowest(a, b, 7 - a - b));
    }
    const auto specs = *split_model(model, 3);
    const auto layers = [&](std::size_t k) { return specs[k].end_layer - specs[k].first_layer; };
    EXPECT_DOUBLE_EQ(slowest(layers(0), layers(1), layers(2)), best);
  }
}

TEST(SplitTest, AGivenSplitIsTakenExactly) {
  const auto specs = *split_model(model_of(4), 2, {3, 1});
  EXPECT_EQ(specs[0].end_layer, 3u);
  EXPECT_EQ(specs[1].first_layer, 3u);
  EXPECT_EQ(specs[1].end_layer, 4u);
}

TEST(SplitTest, RefusesImpossibleSplits) {
  const auto code = [](const ModelSpec& model, std::uint16_t stages, const std::vector<std::uint32_t>& layers = {}) {
    const auto specs = split_model(model, stages, layers);
    return specs.ok() ? ErrorCode::kTimeout : specs.code();
  };
  EXPECT_EQ(code(model_of(2), 3), ErrorCode::kInput);
  EXPECT_EQ(code(model_of(2), 0), ErrorCode::kInput);
  EXPECT_EQ(code(model_of(2), 2, {2, 0}), ErrorCode::kInput);
  EXPECT_EQ(code(model_of(2), 2, {1, 2}), ErrorCode::kInput);
  EXPECT_EQ(code(model_of(2), 2, {2}), ErrorCode::kInput);
  EXPECT_EQ(code(model_of(2, 30), 1), ErrorCode::kInput) << "30 is not a multiple of 4 heads";
  EXPECT_EQ(code(model_of(0), 1), ErrorCode::kInput);
  EXPECT_EQ(code(model_of(1, 0), 1), ErrorCode::kInput);
  EXPECT_EQ(code(model_of(1, 32, 0), 1), ErrorCode::kInput);
}

TEST(InitialiseTest, DrawsTheStatedDistributions) {
  const StageSpec spec = split_model(model_of(2, 128, 512), 1)->front();
  std::vector<float> arena(parameter_count(spec));
  initialise(spec, arena);
  for (const ParameterSpec& parameter : parameters_of(spec)) {
    const auto count = static_cast<std::size_t>(element_count(parameter.shape));
    double sum = 0, squares = 0, fourth = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double value = arena[parameter.offset + i];
      sum += value;
      squares += value * value;
      fourth += value * value * value * value;
    }
    const double n = static_cast<double>(count), variance = squares / n;
    if (!parameter.decays) {
      EXPECT_EQ(sum, parameter.name.ends_with(".weight") ? n : 0) << parameter.name;
      continue;
    }
    const double expected = parameter.name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(4.0) : 0.02;
    EXPECT_NEAR(std::sqrt(variance), expected, 5 * expected / std::sqrt(2 * n)) << parameter.name;
    EXPECT_NEAR(sum / n, 0, 5 * expected / std::sqrt(n)) << parameter.name;
    EXPECT_NEAR(fourth / n / (variance * variance), 3, 5 * std::sqrt(24 / n))
        << "kurtosis of a normal, " << parameter.name;
  }
}

TEST(InitialiseTest, TheSeedChangesEverythingAndNothingElseDoes) {
  ModelSpec model = model_of(1);
  const StageSpec spec = split_model(model, 1)->front();
  std::vector<float> first(parameter_count(spec)), again(first.size()), other(first.size());
  initialise(spec, first);
  initialise(spec, again);
  model.seed = 12;
  initialise(split_model(model, 1)->front(), other);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

// Replicas on different machines must draw the same bits.
TEST(InitialiseTest, GoldenBits) {
  const StageSpec spec = split_model(model_of(1), 1)->front();
  std::vector<float> arena(parameter_count(spec));
  initialise(spec, arena);
  EXPECT_EQ(crc32c(bytes_of(std::span<const float>(arena))), 917233339u);
}

}  // namespace
}  // namespace shoal
