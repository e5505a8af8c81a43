#pragma once
// The faults of one seed: a random subset of the kinds, each at random strength, over a stretch of time. A table says
// what is drawn of a kind and within which bounds. Pure.
#include <set>
#include <vector>

#include "common/rng.h"
#include "sim/fault.h"

namespace shoal {

struct FaultRow {
  FaultKind kind;
  const char* name;
  double share;                           // of the faults, beside the others that were chosen
  Duration shortest, longest, unbounded;  // `unbounded` stands for `longest` when the bounds are lifted
  double weakest, strongest, beyond;      // `beyond` stands for `strongest` when the bounds are lifted
  const char* bound;                      // why the bound is there; empty: it is no limit of the product
};
const std::vector<FaultRow>& fault_table();
const FaultRow& row_of(FaultKind kind);

struct FaultOptions {
  std::set<FaultKind> only;  // empty: a random subset of all, those of routers and relays only with these
  bool nat = false, relay = false;
  Duration mean_between = 2s;  // of two faults
  Duration first_after = 2s, last_after = 42s;
  double lasting = 0;        // share of the faults that end only when a core is healed
  bool lift_bounds = false;  // strengths and times beyond what docs/LIMITS.md says is survived
};

// By time. The same seed gives the same plan. REQUIRES: peers >= 1.
std::vector<Fault> draw_faults(const FaultOptions& options, std::size_t peers, Rng rng);

}  // namespace shoal
