#pragma once
// The model families, each with what its layers can have, for tests that hold for all of them.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "stages/model_family.h"

namespace shoal {

struct FamilyModel {
  std::string name;
  std::function<void(ModelSpec&)> change;  // from gpt2's

  ModelSpec of(ModelSpec model) const {
    change(model);
    return model;
  }
  static std::string name_of(const ::testing::TestParamInfo<FamilyModel>& info) { return info.param.name; }
};
inline void PrintTo(const FamilyModel& model, std::ostream* out) { *out << model.name; }

inline std::vector<FamilyModel> family_models() {
  const auto llama = [](ModelSpec& model) {
    model.family = ModelFamily::kLlama;
    model.inner = model.dim + 4;
    model.norm_epsilon = 1e-6;
  };
  return {
      {"gpt2", [](ModelSpec&) {}},
      {"llama",
       [llama](ModelSpec& model) {
         llama(model);
         model.kv_heads = model.heads / 2;
         model.rope_scaling = {4, 1, 4, 8};
       }},
      {"qwen2",
       [llama](ModelSpec& model) {
         llama(model);
         model.extras = AttentionExtras::kQkvBias;
       }},
      {"qwen3",
       [llama](ModelSpec& model) {
         llama(model);
         model.extras = AttentionExtras::kQkNorm;
         model.kv_heads = model.heads / 2;
         model.head_width = 6;
         model.rope_theta = 1000;
       }},
  };
}

}  // namespace shoal
