#include "runtime/plan/model_size.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "stages/stage_spec.h"

namespace shoal {
namespace {

constexpr std::uint32_t kWidthStep = 64, kWidthMin = 32, kWidthMax = 32768, kLayersMax = 1024;
constexpr double kWidthOfLayer = 64;
// How much a depth that is e times too large or small counts beside a size that is.
constexpr double kShapeWeight = 0.25;
constexpr double kSizeBorne = 1.25;

ModelSpec shape_of(std::uint32_t dim, std::uint32_t layers, std::uint32_t vocabulary) {
  ModelSpec model;
  model.layers = layers;
  model.dim = dim;
  model.heads = std::max(1u, dim / (dim < 256 ? 32 : 64));
  model.positions = std::clamp(std::bit_floor(dim), 64u, 1024u);
  model.vocabulary = vocabulary;
  return model;
}

// e to this is how far a value lies from another, whichever is larger.
double distance(double value, double wanted) { return std::abs(std::log(value / wanted)); }

struct Candidate {
  ModelSpec model;
  double parameters = 0, score = std::numeric_limits<double>::infinity();
};

// The best number of layers for a width; each layer adds the same.
Candidate candidate_of(std::uint32_t dim, double parameters, std::uint32_t vocabulary, std::uint16_t stages) {
  const double one = static_cast<double>(parameters_of_model(shape_of(dim, 1, vocabulary)));
  const double layer = static_cast<double>(parameters_of_model(shape_of(dim, 2, vocabulary))) - one;
  const double wanted = std::round((parameters - one) / layer) + 1;
  const auto layers = static_cast<std::uint32_t>(std::clamp(wanted, static_cast<double>(stages), double{kLayersMax}));
  const double has = one + layer * (layers - 1);
  return {.model = shape_of(dim, layers, vocabulary),
          .parameters = has,
          .score = distance(has, parameters) + kShapeWeight * distance(dim / kWidthOfLayer, layers)};
}

std::string rounded(double parameters) { return std::to_string(static_cast<std::uint64_t>(std::llround(parameters))); }

}  // namespace

std::uint64_t parameters_of_model(const ModelSpec& model) {
  return parameter_count(split_model(model, 1).value().front());
}

Result<ModelSpec> model_of_size(double parameters, std::uint32_t vocabulary, std::uint16_t stages) {
  Candidate best, nearest;
  double nearest_distance = std::numeric_limits<double>::infinity();
  for (std::uint32_t dim = kWidthMin; dim <= kWidthMax; dim += dim < kWidthStep ? kWidthMin : kWidthStep) {
    const Candidate candidate = candidate_of(dim, parameters, vocabulary, stages);
    const double off = distance(candidate.parameters, parameters);
    if (off < nearest_distance) {
      nearest = candidate;
      nearest_distance = off;
    }
    if (off <= std::log(kSizeBorne) && candidate.score < best.score) best = candidate;
  }
  if (std::isfinite(best.score)) return best.model;
  return make_error(ErrorCode::kInput, "no model of " + rounded(parameters) + " parameters with " +
                                           std::to_string(vocabulary) + " ids in " + std::to_string(stages) +
                                           " stages: the nearest has " + rounded(nearest.parameters) +
                                           ". HINT: another size, fewer stages, or a tokenizer of fewer ids");
}

}  // namespace shoal
