#include "stages/stage_spec.h"

#include <algorithm>
#include <limits>

#include "common/check.h"
#include "stages/adapters.h"
#include "stages/boundary.h"

namespace shoal {
namespace {

constexpr std::uint32_t kLayersMax = 4096;
constexpr std::uint32_t kExtentMax = 1u << 24;

double halves_cost(const ModelSpec& model, std::uint32_t first, std::uint32_t end) {
  double cost = 0;
  for (const std::uint32_t cut : model.cuts) {
    if (cut >= first && cut < end) cost += up_cost(model);
    if (cut > first && cut <= end) cost += down_cost(model);
  }
  return cost;
}

double stage_cost(const ModelSpec& model, std::uint16_t stage, std::uint16_t stages, std::uint32_t first,
                  std::uint32_t end) {
  const FamilyRow& row = row_of(model.family);
  return (end - first) * row.layer_cost(model) + halves_cost(model, first, end) +
         (stage == 0 ? row.embedding_cost(model) : 0) + (stage + 1 == stages ? row.head_cost(model) : 0);
}

// Contiguous split with the smallest possible maximum, and among those the smallest sum of squares: dynamic programming
// over (stages, layers), once for the maximum and once for the sum under that maximum. Stages meet at cuts alone where
// the model has some. REQUIRES: no fewer layers, and cuts, than that takes.
std::vector<std::uint32_t> balanced_layers(const ModelSpec& model, std::uint16_t stages) {
  const std::uint32_t layers = model.layers;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double limit = kNever;
  std::vector<std::vector<std::uint32_t>> taken;
  for (const bool squares : {false, true}) {
    std::vector<double> best(layers + 1, kNever);
    best[0] = 0;
    taken.assign(stages, std::vector<std::uint32_t>(layers + 1, 0));
    for (std::uint16_t stage = 0; stage < stages; ++stage) {
      std::vector<double> next(layers + 1, kNever);
      for (std::uint32_t end = 1; end <= layers; ++end) {
        if (!may_meet_at(model, end)) continue;
        for (std::uint32_t count = 1; count <= end; ++count) {
          const double before = best[end - count];
          if (before == kNever) continue;
          const double cost = stage_cost(model, stage, stages, end - count, end);
          if (cost > limit) continue;
          const double value = squares ? before + cost * cost : std::max(before, cost);
          if (value < next[end]) {
            next[end] = value;
            taken[stage][end] = count;
          }
        }
      }
      best = std::move(next);
    }
    limit = best[layers];
  }
  std::vector<std::uint32_t> split(stages);
  std::uint32_t end = layers;
  for (std::uint16_t stage = stages; stage-- > 0;) {
    split[stage] = taken[stage][end];
    end -= split[stage];
  }
  SHOAL_CHECK_EQ(end, 0u);
  return split;
}

std::string layers_text(const std::vector<std::uint32_t>& layers) {
  std::string text = "layers";
  for (const std::uint32_t layer : layers) text += ' ' + std::to_string(layer);
  return text;
}

Status check_model(const ModelSpec& model, std::uint16_t stages) {
  const auto refuse = [](std::string text) { return Status(make_error(ErrorCode::kInput, std::move(text))); };
  const std::pair<const char*, std::uint32_t> extents[] = {{"layers", model.layers},
                                                           {"dim", model.dim},
                                                           {"heads", model.heads},
                                                           {"positions", model.positions},
                                                           {"vocabulary", model.vocabulary}};
  for (const auto& [name, value] : extents) {
    if (value == 0) return refuse(std::string("model: ") + name + " must be at least 1");
    if (value > kExtentMax) return refuse(std::string("model: ") + name + " is beyond " + std::to_string(kExtentMax));
  }
  if (model.layers > kLayersMax) return refuse("model: more than " + std::to_string(kLayersMax) + " layers");
  if (model.context_length() < model.positions || model.context_length() > kExtentMax)
    return refuse("model: context " + std::to_string(model.context) + " is below positions " +
                  std::to_string(model.positions) + " or beyond " + std::to_string(kExtentMax));
  if (model.inner > kExtentMax || model.head_width > kExtentMax)
    return refuse("model: inner or head_width is beyond " + std::to_string(kExtentMax));
  SHOAL_TRY(row_of(model.family).check(model));
  SHOAL_TRY(check_adapters(model));
  SHOAL_TRY(check_boundary(model));
  if (stages == 0) return refuse("model: at least one stage is needed");
  if (stages > model.layers) {
    return refuse("model: " + std::to_string(stages) + " stages need at least as many layers, the model has " +
                  std::to_string(model.layers) + ". HINT: fewer stages or more layers");
  }
  if (has_boundary(model) && stages > model.cuts.size() + 1)
    return refuse("model: " + std::to_string(stages) + " stages meet at one cut less, the model has cuts in front of " +
                  layers_text(model.cuts) + ". HINT: fewer stages, or cuts for all of them");
  return Status::success();
}

}  // namespace

std::vector<ParameterSpec> parameters_of(const StageSpec& spec) {
  const FamilyRow& row = row_of(spec.model.family);
  std::vector<ParameterSpec> list;
  std::size_t offset = 0;
  const bool adapted = has_adapters(spec.model);
  const auto append = [&](std::uint32_t part, std::vector<ParameterSpec> parameters) {
    if (adapted) parameters = adapters_of(spec.model, parameters);
    for (ParameterSpec& parameter : parameters) {
      parameter.part = part;
      parameter.looked_up = parameter.looked_up || part == 0;
      parameter.offset = offset;
      offset += static_cast<std::size_t>(element_count(parameter.shape));
      list.push_back(std::move(parameter));
    }
  };
  if (spec.is_first()) append(0, row.embedding(spec.model));
  for (std::uint32_t layer = spec.first_layer; layer < spec.end_layer; ++layer) {
    append(1 + layer, up_of(spec.model, layer));
    append(1 + layer, row.layer(spec.model, layer));
    append(1 + layer, down_of(spec.model, layer));
  }
  if (spec.is_last()) append(1 + spec.model.layers, row.head(spec.model));
  return list;
}

std::size_t parameter_count(const StageSpec& spec) {
  std::size_t count = 0;
  for (const ParameterSpec& parameter : parameters_of(spec)) {
    count += static_cast<std::size_t>(element_count(parameter.shape));
  }
  return count;
}

double forward_cost(const StageSpec& spec) {
  return stage_cost(spec.model, spec.stage.value, spec.stages, spec.first_layer, spec.end_layer) /
         spec.model.positions;  // a row's costs are of a sequence
}

Result<std::vector<StageSpec>> split_model(const ModelSpec& model, std::uint16_t stages,
                                           const std::vector<std::uint32_t>& layers_per_stage) {
  SHOAL_TRY(check_model(model, stages));
  std::vector<std::uint32_t> split = layers_per_stage;
  if (split.empty()) {
    split = balanced_layers(model, stages);
  } else {
    if (split.size() != stages) {
      return make_error(ErrorCode::kInput, "model: layers_per_stage names " + std::to_string(split.size()) +
                                               " stages, the run has " + std::to_string(stages));
    }
    std::uint64_t sum = 0;
    for (const std::uint32_t layers : split) {
      if (layers == 0) return make_error(ErrorCode::kInput, "model: layers_per_stage gives a stage no layer");
      sum += layers;
      if (sum < model.layers && !may_meet_at(model, static_cast<std::uint32_t>(sum)))
        return make_error(ErrorCode::kInput, "model: by layers_per_stage stages meet in front of layer " +
                                                 std::to_string(sum) + ", the model has cuts in front of " +
                                                 layers_text(model.cuts) + ". HINT: a split that meets at cuts");
    }
    if (sum != model.layers) {
      return make_error(ErrorCode::kInput, "model: layers_per_stage sums to " + std::to_string(sum) +
                                               ", the model has " + std::to_string(model.layers) + " layers");
    }
  }
  std::vector<StageSpec> specs;
  std::uint32_t first = 0;
  for (std::uint16_t stage = 0; stage < stages; ++stage) {
    specs.push_back({model, StageId(stage), stages, first, first + split[stage]});
    first += split[stage];
  }
  return specs;
}

}  // namespace shoal
