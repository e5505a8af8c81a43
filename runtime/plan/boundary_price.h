#pragma once
// What a narrow boundary was seen to cost of the loss, and what a run's is expected to. Pure; thread-safe.
//
// A price is a part of the validation loss: what crosses a boundary goes as int8 both ways, the model beside it sends
// all of its width as fp32, after as many tokens. The figures are those of docs/RESULTS.md: `bench/grid convergence
// --boundary`, four stages in one process, trained from nothing where depth pays; and of a model of a folder
// `scripts/finetune
// --boundary`. Between the measured shares k / d the price goes in straight lines over their logarithms; beyond them as
// at the ends.
#include <optional>
#include <string>

#include "runtime/config/config.h"

namespace shoal {

struct BoundaryPrice {
  double price = 0;    // 0.03 is 3 %
  std::string beyond;  // in what the run differs from all that was measured; empty: in nothing
};

// None: the model has no boundary, or the executor learns nothing. REQUIRES: a checked configuration.
std::optional<BoundaryPrice> boundary_price(const RunConfig& config);
// Where a model with a boundary is trained from nothing: what that is known to cost, and what costs less.
std::optional<std::string> boundary_warning(const RunConfig& config);

}  // namespace shoal
