#include "bench/routing_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/routing_worlds.h"
#include "common/formatted.h"

namespace shoal {

namespace {

struct NamedPolicy {
  std::string name;
  RoutingPolicyMaker make;
};

std::vector<NamedPolicy> all_policies() {
  std::vector<NamedPolicy> all;
  for (std::size_t i = 0; i < kRoutingNames.size(); ++i)
    all.push_back({std::string(kRoutingNames[i]),
                   [i](std::uint64_t seed) { return make_policy(static_cast<RoutingId>(i), seed); }});
  return all;
}

// Those whose names are wanted, all where none is; kMissing names the first that is not there.
template <class T, class NameOf>
Result<std::vector<T>> named(std::vector<T> all, const std::vector<std::string>& names, NameOf name_of) {
  if (names.empty()) return all;
  std::vector<T> chosen;
  for (const std::string& name : names) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const T& one) { return name_of(one) == name; });
    if (at == all.end()) {
      std::string known;
      for (const T& one : all) known += (known.empty() ? "" : ", ") + name_of(one);
      return make_error(ErrorCode::kMissing, "no " + name + " in this contest. HINT: " + known);
    }
    chosen.push_back(*at);
  }
  return chosen;
}

double rounded(double value) { return std::round(value * 1e5) / 1e5; }

}  // namespace

Result<std::vector<RoutingFigures>> routing_contest(const RoutingOptions& options,
                                                    const std::function<void(const RoutingFigures&)>& tell) {
  std::vector<RoutingWorld> worlds = routing_worlds();
  for (const std::string& path : options.lines) {
    SHOAL_ASSIGN(RoutingWorld world, world_of_lines(path));
    worlds.push_back(std::move(world));
  }
  for (const std::string& path : options.traces) {
    SHOAL_ASSIGN(RoutingWorld world, world_of_trace(path));
    worlds.push_back(std::move(world));
  }
  SHOAL_ASSIGN(const auto chosen, named(std::move(worlds), options.worlds, [](const auto& w) { return w.name; }));
  SHOAL_ASSIGN(const auto policies, named(all_policies(), options.policies, [](const auto& p) { return p.name; }));
  std::vector<RoutingFigures> figures;
  for (const RoutingWorld& world : chosen)
    for (const NamedPolicy& policy : policies) {
      figures.push_back(run_routing(world, policy.name, policy.make, options.seed));
      tell(figures.back());
    }
  return figures;
}

std::string routing_table(const std::vector<RoutingFigures>& figures) {
  std::string table =
      "world          senders  policy          ideal    p50 ms   p99 ms  p99/p50   twice    base  fair\n";
  for (const RoutingFigures& f : figures) {
    table += formatted("%-22s %3llu  %-12s %6.1f %% %8.0f %8.0f %8.2f %5.1f %% %5.1f %% %5.3f\n", f.world.c_str(),
                       static_cast<unsigned long long>(f.senders), f.policy.c_str(), 100 * f.share, 1000 * f.p50,
                       1000 * f.p99, f.p50 > 0 ? f.p99 / f.p50 : 0, 100 * f.twice, 100 * f.base_hits, f.fairness);
  }
  return table;
}

std::string routing_json(const std::vector<RoutingFigures>& figures) {
  std::string text;
  for (const RoutingFigures& f : figures) {
    nlohmann::ordered_json use = nlohmann::ordered_json::array();
    for (const double part : f.use) use.push_back(rounded(part));
    const nlohmann::ordered_json line = {{"world", f.world},
                                         {"senders", f.senders},
                                         {"policy", f.policy},
                                         {"done", f.done},
                                         {"share", rounded(f.share)},
                                         {"p50_s", rounded(f.p50)},
                                         {"p99_s", rounded(f.p99)},
                                         {"twice", rounded(f.twice)},
                                         {"base_hits", rounded(f.base_hits)},
                                         {"fairness", rounded(f.fairness)},
                                         {"refused", rounded(f.refused)},
                                         {"use", use}};
    text += line.dump() + "\n";
  }
  return text;
}

Status run_routing_bench(const RoutingOptions& options) {
  SHOAL_ASSIGN(const auto figures, routing_contest(options, [](const RoutingFigures& f) {
                 std::fprintf(stderr, "%s, %s: %.0f virtual s in %.1f s\n", f.world.c_str(), f.policy.c_str(),
                              f.virtual_seconds, f.seconds);
               }));
  std::fputs((options.json ? routing_json(figures) : routing_table(figures)).c_str(), stdout);
  return {};
}

}  // namespace shoal
