#include "stages/boundary.h"

#include <algorithm>
#include <utility>

#include "stages/adapters.h"

namespace shoal {
namespace {

constexpr std::uint32_t kTableStep = 64;
constexpr std::uint64_t kLayersATable = 20;  // times E's parameters

constexpr char kPrefix[] = "boundary.";

std::string name_of(std::uint32_t layer, const char* word) { return kPrefix + std::to_string(layer) + word; }

// Both halves of a cut are drawn under one name, so that U D begins as a projection.
ParameterSpec basis(std::uint32_t layer, const char* word, Shape shape) {
  return {.name = name_of(layer, word),
          .shape = std::move(shape),
          .first = FirstValues::kBasis,
          .drawn_as = name_of(layer, "")};
}

}  // namespace

std::vector<ParameterSpec> down_of(const ModelSpec& model, std::uint32_t layer) {
  if (!model.cut_at(layer + 1)) return {};
  return {basis(layer + 1, ".down", {model.boundary, model.dim})};
}

std::vector<ParameterSpec> up_of(const ModelSpec& model, std::uint32_t layer) {
  if (!model.cut_at(layer)) return {};
  const FamilyRow& row = row_of(model.family);
  const std::int64_t r = model.boundary_table, d = model.dim;
  const std::vector<ParameterSpec> embedding = row.embedding(model);
  std::vector<ParameterSpec> list{basis(layer, ".up", {d, model.boundary})};
  if (r > 0) {
    ParameterSpec table = embedding[0];
    table.drawn_as = std::exchange(table.name, name_of(layer, ".table"));
    table.drawn_width = d;
    table.shape = {model.vocabulary, r};
    table.looked_up = true;
    list.push_back(std::move(table));
  }
  if (r > 0 && r < d)
    list.push_back({.name = name_of(layer, ".table_up"), .shape = {d, r}, .first = FirstValues::kIdentity});
  if (row.learns_places) {
    const ParameterSpec& places = embedding[1];
    list.push_back(
        {.name = name_of(layer, ".places"), .shape = places.shape, .decays = places.decays, .looked_up = true});
  }
  return list;
}

bool is_of_boundary(std::string_view name) { return name.starts_with(kPrefix); }

double down_cost(const ModelSpec& model) { return 2.0 * model.positions * model.dim * model.boundary; }

double up_cost(const ModelSpec& model) {
  const bool has_product = model.boundary_table < model.dim;
  return 2.0 * model.positions * model.dim * (model.boundary + (has_product ? model.boundary_table : 0));
}

std::vector<std::uint32_t> cuts_between(const std::vector<StageSpec>& stages) {
  std::vector<std::uint32_t> cuts;
  for (const StageSpec& spec : stages)
    if (!spec.is_first()) cuts.push_back(spec.first_layer);
  return cuts;
}

std::uint32_t usual_boundary_table(const ModelSpec& model, std::uint16_t stages) {
  if (model.dim <= kTableStep) return model.dim;
  std::uint64_t layer = 0;
  for (const ParameterSpec& parameter : row_of(model.family).layer(model, 0))
    layer += static_cast<std::uint64_t>(element_count(parameter.shape));
  const std::uint64_t times = std::uint64_t{stages} * model.vocabulary * kLayersATable;
  const std::uint64_t width = layer * model.layers / std::max<std::uint64_t>(1, times);
  const std::uint64_t steps = std::clamp<std::uint64_t>(width / kTableStep, 1, model.dim / kTableStep);
  return static_cast<std::uint32_t>(steps) * kTableStep;
}

ModelSpec without_boundary(ModelSpec model) {
  model.boundary = model.boundary_table = 0;
  model.cuts.clear();
  return model;
}

Status check_boundary(const ModelSpec& model) {
  const auto refuse = [](std::string text) {
    return Status(make_error(ErrorCode::kInput, "model: " + std::move(text)));
  };
  const std::string k = "boundary = " + std::to_string(model.boundary);
  if (!has_boundary(model)) {
    if (model.boundary_table == 0 && model.cuts.empty()) return {};
    return refuse("boundary_table and cuts without boundary. HINT: boundary = 64, say, or leave them out");
  }
  if (has_adapters(model)) return refuse(k + " beside lora_rank. HINT: adapters stand beside models as wide as dim");
  if (model.boundary >= model.dim)
    return refuse(k + " is no fewer values than dim = " + std::to_string(model.dim) +
                  ". HINT: an eighth of dim, say, or 0 for a model without a narrow boundary");
  if (model.boundary_table > model.dim)
    return refuse("boundary_table = " + std::to_string(model.boundary_table) +
                  " is beyond dim = " + std::to_string(model.dim));
  if (model.cuts.empty()) return refuse(k + " without cuts. HINT: two stages or more, or cuts = [LAYER, ...]");
  std::uint32_t before = 0;
  for (const std::uint32_t cut : model.cuts) {
    if (cut <= before || cut >= model.layers)
      return refuse("cuts stand in front of layers 1 to " + std::to_string(model.layers - 1) + ", ascending; " +
                    std::to_string(cut) + " behind " + std::to_string(before) + " does not");
    before = cut;
  }
  return {};
}

}  // namespace shoal
