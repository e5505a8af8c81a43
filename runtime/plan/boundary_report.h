#pragma once
// What `shoal plan` says of what crosses between stages: how many values of a token, what fewer than all of them cost,
// and what a peer's line carries of them. Pure.
#include <optional>
#include <string>

#include "common/program/json_text.h"
#include "runtime/plan/boundary_price.h"

namespace shoal {

// Tokens a second of a peer's line.
struct CarriedTokens {
  double hops = 0;         // as if there were no rounds
  double with_rounds = 0;  // of the expected replicas
};

struct BoundaryFigures {
  std::uint32_t values = 0, dim = 0;                // that cross of a token, and of how many
  double forward = 0, back = 0;                     // bytes of a token, over the edge that has most
  double whole_forward = 0, whole_back = 0;         // if all values crossed
  std::optional<BoundaryPrice> price{};             // with a boundary
  std::optional<CarriedTokens> carried{}, whole{};  // with a line
  double made = 0;                                  // tokens a second of a peer's device; 0: not given
  std::optional<std::uint32_t> widest{};            // widest_boundary() for what devices make; with both
};

// A line of `mbit` Mbit/s each way, a device that makes `made` tokens a second of its stage; 0: not given. Nothing:
// there is one stage. REQUIRES: a checked configuration.
std::optional<BoundaryFigures> boundary_figures(const RunConfig& config, double mbit, double made);
// Sentences, each on a line; nothing where the run has no boundary and no line is given.
std::string text_of(const BoundaryFigures& figures);
Json json_of(const BoundaryFigures& figures);

}  // namespace shoal
