// Adapters: which matrices have them, where they lie, and what they come to when they are put into their base.
#include "stages/adapters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stages/stage_file.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

ModelSpec adapted(ModelFamily family) {
  ModelSpec model{.layers = 3, .dim = 8, .heads = 2, .positions = 4, .vocabulary = 16, .seed = 7};
  model.family = family;
  model.lora_rank = 2;
  model.lora_alpha = 3;
  return model;
}

std::vector<float> numbers(std::size_t count, float first) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + 0.25f * static_cast<float>(i % 7);
  return values;
}

TEST(AdaptersTest, AreAllThatIsTrainedOfALayer) {
  ModelSpec model = adapted(ModelFamily::kLlama);
  model.lora_targets = {"q_proj", "mlp.down_proj"};
  const StageSpec spec{model, StageId(1), 3, 1, 2};
  const std::vector<ParameterSpec> list = parameters_of(spec);
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].name, "model.layers.1.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(list[0].shape, (Shape{2, 8}));
  EXPECT_EQ(list[1].name, "model.layers.1.self_attn.q_proj.lora_B.weight");
  EXPECT_EQ(list[1].shape, (Shape{8, 2}));
  EXPECT_EQ(list[2].name, "model.layers.1.mlp.down_proj.lora_A.weight");
  EXPECT_EQ(list[2].shape, (Shape{2, 22}));  // inner 8/3 d, above
  EXPECT_EQ(list[3].offset, 16u + 16 + 44);
  EXPECT_EQ(parameter_count(base_of(spec)), parameter_count({base_of(model), StageId(1), 3, 1, 2}));
}

TEST(AdaptersTest, NeitherEmbeddingNorHeadHasOne) {
  for (const ModelFamily family : {ModelFamily::kGpt2, ModelFamily::kLlama}) {
    const std::vector<StageSpec> specs = *split_model(adapted(family), 3);
    for (const StageSpec& spec : specs)
      for (const ParameterSpec& parameter : parameters_of(spec)) {
        EXPECT_NE(parameter.name.find(".lora_"), std::string::npos);
        EXPECT_EQ(parameter.part, 1 + spec.first_layer);
      }
  }
}

TEST(AdaptersTest, TheFirstModelIsTheBase) {
  const StageSpec spec = split_model(adapted(ModelFamily::kGpt2), 1)->front();
  std::vector<float> adapters(parameter_count(spec)), base = numbers(parameter_count(base_of(spec)), 1);
  initialise(spec, adapters);
  EXPECT_TRUE(std::ranges::any_of(adapters, [](float value) { return value != 0; }));
  const std::vector<float> before = base;
  merge_adapters(spec, adapters, base);
  EXPECT_EQ(base, before);
}

// W (in, out) and W (out, in) both get alpha / r times B A, and nothing else changes.
TEST(AdaptersTest, AreMergedByTheirEquation) {
  for (const ModelFamily family : {ModelFamily::kGpt2, ModelFamily::kLlama}) {
    const StageSpec spec = split_model(adapted(family), 1)->front();
    const std::vector<float> adapters = numbers(parameter_count(spec), -0.5f);
    std::vector<float> merged = numbers(parameter_count(base_of(spec)), 1);
    const std::vector<float> before = merged;
    merge_adapters(spec, adapters, merged);
    const auto trained = parameters_of(spec), matrices = parameters_of(base_of(spec));
    const auto places = adapter_places(spec);
    std::size_t with = 0;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const auto count = static_cast<std::size_t>(element_count(matrices[i].shape));
      const auto columns = static_cast<std::size_t>(matrices[i].shape.back());
      for (std::size_t k = 0; k < count; ++k) {
        double change = 0;
        if (places[i]) {
          const ParameterSpec &down = trained[places[i]->down], &up = trained[places[i]->up];
          const std::size_t out = family == ModelFamily::kGpt2 ? k % columns : k / columns;
          const std::size_t in = family == ModelFamily::kGpt2 ? k / columns : k % columns;
          const auto width = static_cast<std::size_t>(down.shape[1]);
          for (std::size_t r = 0; r < 2; ++r)
            change += 1.5 * adapters[up.offset + out * 2 + r] * adapters[down.offset + r * width + in];
        }
        ASSERT_NEAR(merged[matrices[i].offset + k] - before[matrices[i].offset + k], change, 1e-5) << matrices[i].name;
      }
      with += places[i] ? 1 : 0;
    }
    EXPECT_EQ(with, family == ModelFamily::kGpt2 ? 3u * 4 : 3u * 7);
  }
}

TEST(AdaptersTest, WhatCannotBeIsNamed) {
  const auto refused = [](const ModelSpec& model) { return split_model(model, 1).error().message; };
  ModelSpec model = adapted(ModelFamily::kLlama);
  model.lora_targets = {"q_proj", "c_attn"};
  EXPECT_NE(refused(model).find("\"c_attn\""), std::string::npos);
  EXPECT_NE(refused(model).find("gate_proj"), std::string::npos) << "what there is";
  model.lora_targets = {"proj"};
  EXPECT_NE(refused(model).find("\"proj\""), std::string::npos) << "a whole word";
  model = adapted(ModelFamily::kGpt2);
  model.lora_rank = 9;
  EXPECT_NE(refused(model).find("beyond the rank"), std::string::npos);
  model = base_of(model);
  model.lora_alpha = 16;
  EXPECT_NE(refused(model).find("lora_rank"), std::string::npos) << "alpha alone does nothing";
}

TEST(AdaptersTest, AStagesFileSaysWhichTheyAre) {
  const ScratchFolder folder;
  ModelSpec model = adapted(ModelFamily::kLlama);
  model.lora_targets = {"q_proj", "v_proj"};
  const std::vector<StageSpec> specs = *split_model(model, 2);
  for (const StageSpec& spec : specs)
    ASSERT_TRUE(save_stage(folder.path(), spec, numbers(parameter_count(spec), 1)).ok());
  ASSERT_TRUE(save_index(folder.path(), specs).ok());
  const auto loaded = load_model(folder.path());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ((*loaded)[1].spec, specs[1]);
  EXPECT_EQ((*loaded)[1].parameters, numbers(parameter_count(specs[1]), 1));
  EXPECT_EQ(ScratchFolder::read(folder / kArchitectureFileName), "") << "transformers would take it for the model";
}

}  // namespace
}  // namespace shoal
