// shoal-sim: whole swarms under random faults in virtual time, seed after seed.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "common/log.h"
#include "sim/scenario.h"

namespace shoal {
namespace {

struct Arguments {
  std::uint64_t first = 1, count = 100, microbatches = 96;
  std::uint16_t stages = 3, replicas = 2;
  std::string rule = "diloco";
  double round_budget_s = 0, fault_every_s = 3;
  FaultMix mix;
  bool verbose = false;
};

void add_options(CLI::App& app, Arguments& a) {
  app.add_option("--seed", a.first, "first seed")->capture_default_str();
  app.add_option("--seeds", a.count, "how many seeds")->capture_default_str();
  app.add_option("--microbatches", a.microbatches, "length of a run")->capture_default_str();
  app.add_option("--stages", a.stages, "stages")->capture_default_str();
  app.add_option("--replicas", a.replicas, "peers of a stage")->capture_default_str();
  app.add_option("--rule", a.rule, "outer rule")->check(CLI::IsMember({"diloco", "allreduce"}))->capture_default_str();
  app.add_option("--round-budget", a.round_budget_s, "seconds a round may take: less, and more members miss one")
      ->capture_default_str();
  app.add_option("--fault-every", a.fault_every_s, "seconds between two faults, on average")->capture_default_str();
  app.add_option("--partitions", a.mix.partitions,
                 "share of faults that part two peers (the others: kills 0.3, freezes 0.3, cuts 0.3, launch 0.1)")
      ->capture_default_str();
  app.add_flag("--verbose", a.verbose, "tell every story, not only the broken ones");
}

ScenarioResult run_seed(const Arguments& a, std::uint64_t seed) {
  SwarmOptions options;
  options.seed = seed;
  options.stages = a.stages;
  options.replicas = a.replicas;
  options.config = small_config(a.rule == "diloco" ? RuleId::kDiloco : RuleId::kAllreduce, a.stages, a.microbatches);
  options.round_budget = from_seconds(a.round_budget_s);
  FaultMix mix = a.mix;
  mix.mean_between = from_seconds(a.fault_every_s);
  return run_scenario(std::move(options), mix);
}

void add(const ScenarioResult& result, ScenarioResult& total) {
  using Counter = std::uint64_t ScenarioResult::*;
  const Counter counters[] = {&ScenarioResult::kills,         &ScenarioResult::freezes,
                              &ScenarioResult::cuts,          &ScenarioResult::launch_kills,
                              &ScenarioResult::partitions,    &ScenarioResult::behind,
                              &ScenarioResult::shifts_anchor, &ScenarioResult::shifts_snapshot,
                              &ScenarioResult::branches,      &ScenarioResult::undos,
                              &ScenarioResult::gone,          &ScenarioResult::lost,
                              &ScenarioResult::committed,     &ScenarioResult::looks};
  for (const Counter counter : counters) total.*counter += result.*counter;
}

void tell(std::uint64_t seed, const ScenarioResult& result) {
  std::printf("seed %llu: %zu rules broken, %.1f virtual s, trace %016llx\n", static_cast<unsigned long long>(seed),
              result.broken.size(), result.virtual_seconds, static_cast<unsigned long long>(result.trace));
  for (const std::string& line : result.broken) std::printf("  BROKEN %s\n", line.c_str());
  for (const std::string& line : result.story) std::printf("  %s\n", line.c_str());
}

void tell_total(std::uint64_t seeds, std::uint64_t failed, const ScenarioResult& total) {
  const auto n = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "%llu seeds, %llu with a broken rule, judged %llu times; %llu kills, %llu freezes, %llu cuts, %llu launch kills; "
      "%llu branches, %llu undos, %llu commits answered gone, %llu lost, %llu committed\n",
      n(seeds), n(failed), n(total.looks), n(total.kills), n(total.freezes), n(total.cuts), n(total.launch_kills),
      n(total.branches), n(total.undos), n(total.gone), n(total.lost), n(total.committed));
  std::printf(
      "%llu partitions; %llu commits missed, made up by %llu shifts from the anchor and %llu from the snapshot\n",
      n(total.partitions), n(total.behind), n(total.shifts_anchor), n(total.shifts_snapshot));
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  using namespace shoal;
  CLI::App app{"Runs swarms of the product's own code in virtual time under random faults and checks what was counted"};
  Arguments arguments;
  add_options(app, arguments);
  CLI11_PARSE(app, argc, argv);
  set_log_level(LogLevel::kError);
  std::uint64_t failed = 0;
  ScenarioResult total;
  for (std::uint64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    const ScenarioResult result = run_seed(arguments, seed);
    add(result, total);
    failed += !result.broken.empty();
    if (!result.broken.empty() || arguments.verbose) tell(seed, result);
  }
  tell_total(arguments.count, failed, total);
  return failed == 0 ? 0 : 1;
}
