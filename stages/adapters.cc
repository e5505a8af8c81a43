#include "stages/adapters.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "common/check.h"
#include "common/formatted.h"

namespace shoal {
namespace {

constexpr std::string_view kWeight = ".weight";

// "model.layers.0.self_attn.q_proj.weight": without its last word.
std::string module_of(const ParameterSpec& parameter) {
  std::string_view name = parameter.name;
  name.remove_suffix(kWeight.size());
  return std::string(name);
}

bool is_target(const ModelSpec& model, const ParameterSpec& parameter) {
  if (parameter.matrices == 0) return false;
  const std::string module = module_of(parameter);
  return model.lora_targets.empty() || std::ranges::any_of(model.lora_targets, [&](const std::string& target) {
           return module == target || module.ends_with("." + target);
         });
}

struct Extents {
  std::int64_t in = 0, out = 0;
};

Extents extents_of(const ModelSpec& model, const ParameterSpec& matrix) {
  const bool input_first = row_of(model.family).input_first;
  return {.in = matrix.shape[input_first ? 0 : 1], .out = matrix.shape[input_first ? 1 : 0]};
}

// Last words of the names of a layer's matrices. GPT-2 has a c_proj in its attention and one in its MLP.
std::vector<std::string> possible_targets(const std::vector<ParameterSpec>& layer) {
  std::vector<std::string> words;
  for (const ParameterSpec& parameter : layer) {
    if (parameter.matrices == 0) continue;
    const std::string module = module_of(parameter), word = module.substr(module.rfind('.') + 1);
    if (std::ranges::find(words, word) == words.end()) words.push_back(word);
  }
  return words;
}

}  // namespace

double adapter_scale(const ModelSpec& model) {
  return model.lora_alpha == 0 ? 2.0 : model.lora_alpha / model.lora_rank;
}

ModelSpec base_of(ModelSpec model) {
  model.lora_rank = 0;
  model.lora_alpha = 0;
  model.lora_targets.clear();
  return model;
}

StageSpec base_of(StageSpec spec) {
  spec.model = base_of(std::move(spec.model));
  return spec;
}

std::vector<ParameterSpec> adapters_of(const ModelSpec& model, std::span<const ParameterSpec> base) {
  std::vector<ParameterSpec> list;
  for (const ParameterSpec& matrix : base) {
    if (!is_target(model, matrix)) continue;
    const Extents extents = extents_of(model, matrix);
    const std::string module = module_of(matrix);
    list.push_back({.name = module + ".lora_A.weight",
                    .shape = {model.lora_rank, extents.in},
                    .decays = true,
                    .deviation = 1 / std::sqrt(3.0 * static_cast<double>(extents.in))});
    list.push_back({.name = module + ".lora_B.weight", .shape = {extents.out, model.lora_rank}, .decays = true});
  }
  return list;
}

std::vector<std::string> adapter_targets(const ModelSpec& model) {
  return model.lora_targets.empty() ? possible_targets(row_of(model.family).layer(model, 0)) : model.lora_targets;
}

Status check_adapters(const ModelSpec& model) {
  if (!has_adapters(model)) {
    if (model.lora_alpha == 0 && model.lora_targets.empty()) return {};
    return make_error(ErrorCode::kInput,
                      "model: lora_alpha and lora_targets without lora_rank. HINT: lora_rank = 8, say, or leave them "
                      "out");
  }
  const std::vector<ParameterSpec> layer = row_of(model.family).layer(model, 0);
  for (const std::string& target : model.lora_targets) {
    ModelSpec alone = model;
    alone.lora_targets = {target};
    const bool found = std::ranges::any_of(layer, [&](const auto& matrix) { return is_target(alone, matrix); });
    if (!found || target.empty())
      return make_error(ErrorCode::kInput, "model: lora_targets has \"" + target +
                                               "\", which no matrix of a layer is called. HINT: there are " +
                                               list_text(possible_targets(layer)));
  }
  for (const ParameterSpec& matrix : layer) {
    if (!is_target(model, matrix)) continue;
    const Extents extents = extents_of(model, matrix);
    if (std::int64_t{model.lora_rank} > std::min(extents.in, extents.out))
      return make_error(ErrorCode::kInput, "model: lora_rank = " + std::to_string(model.lora_rank) +
                                               " is beyond the rank of " + matrix.name + ", " + text_of(matrix.shape));
  }
  return {};
}

std::vector<std::optional<AdapterPlaces>> adapter_places(const StageSpec& spec) {
  std::map<std::string, std::size_t> places;
  const std::vector<ParameterSpec> trained = parameters_of(spec);
  for (std::size_t i = 0; i < trained.size(); ++i) places[trained[i].name] = i;
  std::vector<std::optional<AdapterPlaces>> found;
  for (const ParameterSpec& parameter : parameters_of(base_of(spec))) {
    found.emplace_back();
    if (!is_target(spec.model, parameter)) continue;
    const std::string module = module_of(parameter);
    found.back() = {.down = places.at(module + ".lora_A.weight"), .up = places.at(module + ".lora_B.weight")};
  }
  return found;
}

void merge_adapters(const StageSpec& spec, std::span<const float> adapters, std::span<float> base) {
  SHOAL_CHECK_EQ(adapters.size(), parameter_count(spec));
  SHOAL_CHECK_EQ(base.size(), parameter_count(base_of(spec)));
  const std::vector<ParameterSpec> trained = parameters_of(spec), matrices = parameters_of(base_of(spec));
  const std::vector<std::optional<AdapterPlaces>> places = adapter_places(spec);
  const bool input_first = row_of(spec.model.family).input_first;
  const auto scale = static_cast<float>(adapter_scale(spec.model));
  const std::size_t rank = spec.model.lora_rank;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (!places[i]) continue;
    const Extents extents = extents_of(spec.model, matrices[i]);
    const auto in = static_cast<std::size_t>(extents.in), out = static_cast<std::size_t>(extents.out);
    const float* down = adapters.data() + trained[places[i]->down].offset;
    const float* up = adapters.data() + trained[places[i]->up].offset;
    float* weight = base.data() + matrices[i].offset;
    // W (out, in) row by row of B and A; W (in, out) is its transpose.
    std::vector<float> row(in);
    for (std::size_t o = 0; o < out; ++o) {
      std::ranges::fill(row, 0.0f);
      for (std::size_t r = 0; r < rank; ++r) {
        const float factor = scale * up[o * rank + r];
        for (std::size_t k = 0; k < in; ++k) row[k] += factor * down[r * in + k];
      }
      for (std::size_t k = 0; k < in; ++k) weight[input_first ? k * out + o : o * in + k] += row[k];
    }
  }
}

}  // namespace shoal
