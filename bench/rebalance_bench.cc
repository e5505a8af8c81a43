#include "bench/rebalance_bench.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace shoal {
namespace {

struct Arm {
  const char* name;
  MovePlanner planner;
  Duration period{};
};
constexpr Arm kArms[] = {{"none", MovePlanner::kNone},
                         {"swarm 300 s", MovePlanner::kSwarm, 300s},
                         {"swarm 60 s", MovePlanner::kSwarm, 60s},
                         {"shoal", MovePlanner::kShoal}};

void print(const RebalanceOptions& options, const std::string& trace, const char* planner, const RebalanceFigures& f) {
  if (options.json)
    std::printf("%s\n", nlohmann::json{{"trace", trace},
                                       {"planner", planner},
                                       {"stages", options.world.stages},
                                       {"spread", options.world.spread},
                                       {"mean_share", f.mean_share},
                                       {"first_hour", f.first_hour},
                                       {"last_hour", f.last_hour},
                                       {"stood_share", f.stood_share},
                                       {"moves_per_peer_hour", f.moves_per_peer_hour}}
                            .dump()
                            .c_str());
  else
    std::printf("%-24s %-12s %7.1f %10.1f %10.1f %7.2f %8.2f\n", trace.c_str(), planner, 100 * f.mean_share,
                100 * f.first_hour, 100 * f.last_hour, 100 * f.stood_share, f.moves_per_peer_hour);
}

}  // namespace

Status run_rebalance_bench(const RebalanceOptions& options) {
  if (!options.json)
    std::printf(
        "%u stages; %% of what the best assignment of those who are there makes\n%-24s %-12s %7s %10s %10s %7s %8s\n",
        options.world.stages, "trace", "planner", "mean", "first hour", "last hour", "stood", "moves/h");
  for (const std::string& path : options.traces)
    for (const Arm& arm : kArms) {
      RebalanceFigures mean;
      std::string name;
      for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
        SHOAL_ASSIGN(const SwarmTrace trace, read_trace(path, seed));
        name = trace.name;
        RebalanceWorld world = options.world;
        world.seed = seed;
        world.planner = arm.planner;
        world.period = arm.period;
        const RebalanceFigures f = run_rebalance(trace, world);
        const double share = 1.0 / static_cast<double>(options.seeds);
        mean.mean_share += share * f.mean_share;
        mean.first_hour += share * f.first_hour;
        mean.last_hour += share * f.last_hour;
        mean.stood_share += share * f.stood_share;
        mean.moves_per_peer_hour += share * f.moves_per_peer_hour;
      }
      print(options, name, arm.name, mean);
    }
  return {};
}

}  // namespace shoal
