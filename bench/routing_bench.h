#pragma once
// shoal-bench routing: every policy in every world of the contest (routing_world.h), with the same seeds. In virtual
// time, so that the table follows from the seeds alone.
// Thread: one; blocking.
#include <cstdint>
#include <string>
#include <vector>

#include "bench/routing_world.h"
#include "common/result.h"

namespace shoal {

struct RoutingOptions {
  std::vector<std::string> worlds, policies;  // names; none: all
  std::vector<std::string> lines, traces;     // files of further worlds
  std::uint64_t seed = 1;
  bool json = false;
};

// Each policy in each world, in their order, and `tell` of each at once. ERRORS: kMissing (a name or a file),
// kInput (a file).
Result<std::vector<RoutingFigures>> routing_contest(const RoutingOptions& options,
                                                    const std::function<void(const RoutingFigures&)>& tell);

std::string routing_table(const std::vector<RoutingFigures>& figures);
// One object a line, with every figure but the time that it took here.
std::string routing_json(const std::vector<RoutingFigures>& figures);

Status run_routing_bench(const RoutingOptions& options);

}  // namespace shoal
