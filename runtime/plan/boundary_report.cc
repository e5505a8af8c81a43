#include "runtime/plan/boundary_report.h"

#include <algorithm>

#include "common/formatted.h"
#include "runtime/plan/line_bytes.h"

namespace shoal {
namespace {

constexpr double kMegabit = 1e6 / 8;

RunConfig with_all_values(RunConfig config) {
  config.model.boundary = 0;
  return config;
}

// Both ways over the edge that has most.
std::pair<double, double> most_over(const RunConfig& config) {
  double forward = 0, back = 0;
  for (const LineBytes& line : line_bytes(config)) {
    forward = std::max(forward, line.forward);
    back = std::max(back, line.backward);
  }
  return {forward, back};
}

std::string price_text(const BoundaryPrice& price) {
  return formatted("Loss: + %.1f %%, as small models had it (docs/RESULTS.md)", 100 * price.price) +
         (price.beyond.empty() ? "" : "; not measured: " + price.beyond) + ".\n";
}

std::string widest_text(const BoundaryFigures& f) {
  const std::string made = formatted("Its device makes %.4g tokens/s, which the line ", f.made);
  if (*f.widest >= f.dim) return made + "carries with all values.\n";
  if (*f.widest == 0) return made + "carries with no boundary: rounds take what it has.\n";
  return made + "carries up to [model] boundary = " + std::to_string(*f.widest) + ".\n";
}

Json json_of(const std::optional<CarriedTokens>& carried) {
  if (!carried) return {};
  return {{"hops_per_s", carried->hops}, {"with_rounds_per_s", carried->with_rounds}};
}

}  // namespace

std::optional<BoundaryFigures> boundary_figures(const RunConfig& config, double mbit, double made) {
  if (config.pipeline.stages < 2) return std::nullopt;
  BoundaryFigures f{.values = config.model.wire_width(), .dim = config.model.dim, .price = boundary_price(config)};
  f.made = made;
  const RunConfig whole = with_all_values(config);
  std::tie(f.forward, f.back) = most_over(config);
  std::tie(f.whole_forward, f.whole_back) = most_over(whole);
  if (mbit <= 0) return f;
  const double line = mbit * kMegabit;
  const std::vector<double> rounds = round_bytes(config);
  f.carried = {carried_tokens(config, line, {}), carried_tokens(config, line, rounds)};
  f.whole = {carried_tokens(whole, line, {}), carried_tokens(whole, line, rounds)};
  if (made > 0) f.widest = widest_boundary(config, line, made);
  return f;
}

std::string text_of(const BoundaryFigures& f) {
  std::string text;
  if (f.price)
    text += formatted(
                "Between stages %u of a token's %u values cross ([model] boundary), %.4g B there and %.4g B back; "
                "all would be %.4g and %.4g. ",
                f.values, f.dim, f.forward, f.back, f.whole_forward, f.whole_back) +
            price_text(*f.price);
  if (f.carried) {
    text +=
        formatted("A peer's line carries %.4g tokens/s, beside rounds %.4g", f.carried->hops, f.carried->with_rounds);
    text += f.values == f.dim ? "" : formatted("; of all values %.4g and %.4g", f.whole->hops, f.whole->with_rounds);
    text += ".\n";
  }
  return text + (f.widest ? widest_text(f) : "");
}

Json json_of(const BoundaryFigures& f) {
  return {{"values", f.values},
          {"dim", f.dim},
          {"forward_bytes_per_token", f.forward},
          {"backward_bytes_per_token", f.back},
          {"price", f.price ? Json(f.price->price) : Json()},
          {"price_beyond", f.price ? Json(f.price->beyond) : Json()},
          {"line", json_of(f.carried)},
          {"line_with_all_values", json_of(f.whole)},
          {"made_per_s", f.made > 0 ? Json(f.made) : Json()},
          {"widest", f.widest}};
}

}  // namespace shoal
