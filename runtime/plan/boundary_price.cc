#include "runtime/plan/boundary_price.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "common/formatted.h"
#include "stages/boundary.h"

namespace shoal {
namespace {

struct MeasuredShare {
  double share, price;  // k / d
};
constexpr MeasuredShare kShares[] = {{1.0 / 16, 0.072}, {1.0 / 8, 0.061}, {1.0 / 4, 0.051}};
constexpr double kFittedPrice = 0.012, kFittedShare = 1.0 / 8;
// The bounds of what was measured.
constexpr std::uint32_t kDimLeast = 64, kDimMost = 128, kLayersMost = 8;
constexpr std::size_t kCutsMost = 3;
constexpr std::uint64_t kTokensMost = 5'000'000;

double price_of(double share) {
  std::size_t above = 1;
  while (above + 1 < std::size(kShares) && kShares[above].share < share) ++above;
  const MeasuredShare &low = kShares[above - 1], &high = kShares[above];
  const double part = std::log(std::clamp(share, low.share, high.share) / low.share) / std::log(high.share / low.share);
  return low.price + part * (high.price - low.price);
}

std::string beyond(const RunConfig& config, double share) {
  const ModelSpec model = config.model_spec();
  const std::vector<CodecId> forward = config.wire.forward.named(), backward = config.wire.backward.named();
  const bool whole =
      std::ranges::all_of(forward, keeps_whole_numbers) && std::ranges::all_of(backward, keeps_whole_numbers);
  const std::uint64_t tokens = config.end_targets();
  std::string text;
  const auto add = [&](bool differs, const std::string& what) {
    if (differs) text += (text.empty() ? "" : ", ") + what;
  };
  if (!config.model.from.empty()) add(share != kFittedShare, "another part of the width than an eighth");
  add(share < kShares[0].share, "less than a sixteenth of the width, which costs more");
  add(share > std::end(kShares)[-1].share, "more than a fourth of the width");
  add(model.dim < kDimLeast || model.dim > kDimMost, "a width of " + std::to_string(model.dim));
  add(model.layers > kLayersMost, std::to_string(model.layers) + " layers");
  add(model.cuts.size() > kCutsMost, std::to_string(model.cuts.size()) + " cuts");
  add(model.boundary_table < usual_boundary_table(model, config.pipeline.stages),
      "a token table of " + std::to_string(model.boundary_table));
  add(!whole, "codecs coarser than int8");
  add(config.pipeline.replicas > 1, "replicas");
  add(tokens == 0 || tokens > kTokensMost, formatted("more than %.1f M tokens", kTokensMost / 1e6));
  return text;
}

}  // namespace

std::optional<BoundaryPrice> boundary_price(const RunConfig& config) {
  if (!has_boundary(config.model) || config.executor.kind != ExecutorKind::kTorch) return std::nullopt;
  const double share = static_cast<double>(config.model.boundary) / config.model.dim;
  const bool fitted = !config.model.from.empty();
  return BoundaryPrice{.price = fitted ? kFittedPrice : price_of(share), .beyond = beyond(config, share)};
}

std::optional<std::string> boundary_warning(const RunConfig& config) {
  const auto price = boundary_price(config);
  if (!price || !config.model.from.empty()) return std::nullopt;
  return formatted(
      "[model] boundary = %u is experimental where a model is trained from nothing: of a small one it took "
      "%.1f %% of the loss, where int4 takes 3 %%. HINT: `shoal fit` gives one that exists a boundary",
      config.model.boundary, 100 * price->price);
}

}  // namespace shoal
