// shoal-sim: whole swarms under random faults in virtual time, seed after seed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "common/log.h"
#include "sim/scenario.h"

int main(int argc, char** argv) {
  using namespace shoal;
  CLI::App app{"Runs swarms of the product's own code in virtual time under random faults and checks what was counted"};
  std::uint64_t first = 1, count = 100, microbatches = 96;
  std::uint16_t stages = 3, replicas = 2;
  std::string rule = "diloco";
  double round_budget_s = 30, fault_every_s = 3;
  FaultMix mix;
  bool verbose = false;
  app.add_option("--seed", first, "first seed")->capture_default_str();
  app.add_option("--seeds", count, "how many seeds")->capture_default_str();
  app.add_option("--microbatches", microbatches, "length of a run")->capture_default_str();
  app.add_option("--stages", stages, "stages")->capture_default_str();
  app.add_option("--replicas", replicas, "peers of a stage")->capture_default_str();
  app.add_option("--rule", rule, "outer rule")->check(CLI::IsMember({"diloco", "allreduce"}))->capture_default_str();
  app.add_option("--round-budget", round_budget_s, "seconds a round may take: less, and more members miss one")
      ->capture_default_str();
  app.add_option("--fault-every", fault_every_s, "seconds between two faults, on average")->capture_default_str();
  app.add_option("--partitions", mix.partitions,
                 "share of faults that part two peers (the others: kills 0.3, freezes 0.3, cuts 0.3, launch 0.1)")
      ->capture_default_str();
  app.add_flag("--verbose", verbose, "tell every story, not only the broken ones");
  CLI11_PARSE(app, argc, argv);
  set_log_level(LogLevel::kError);
  mix.mean_between = from_seconds(fault_every_s);

  std::uint64_t failed = 0;
  ScenarioResult total;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SwarmOptions options;
    options.seed = seed;
    options.stages = stages;
    options.replicas = replicas;
    options.config = small_config(rule == "diloco" ? RuleId::kDiloco : RuleId::kAllreduce, stages, microbatches);
    options.round_budget = from_seconds(round_budget_s);
    const ScenarioResult result = run_scenario(std::move(options), mix);
    total.kills += result.kills;
    total.freezes += result.freezes;
    total.cuts += result.cuts;
    total.launch_kills += result.launch_kills;
    total.partitions += result.partitions;
    total.behind += result.behind;
    total.shifts_anchor += result.shifts_anchor;
    total.shifts_snapshot += result.shifts_snapshot;
    total.branches += result.branches;
    total.undos += result.undos;
    total.gone += result.gone;
    total.listed += result.listed;
    total.committed += result.committed;
    failed += !result.broken.empty();
    if (result.broken.empty() && !verbose) continue;
    std::printf("seed %llu: %zu rules broken, %.1f virtual s, trace %016llx\n", static_cast<unsigned long long>(seed),
                result.broken.size(), result.virtual_seconds, static_cast<unsigned long long>(result.trace));
    for (const std::string& line : result.broken) std::printf("  BROKEN %s\n", line.c_str());
    for (const std::string& line : result.story) std::printf("  %s\n", line.c_str());
  }
  std::printf(
      "%llu seeds, %llu with a broken rule; %llu kills, %llu freezes, %llu cuts, %llu launch kills; %llu branches, "
      "%llu undos, "
      "%llu commits answered gone, %llu listed, %llu committed\n",
      static_cast<unsigned long long>(count), static_cast<unsigned long long>(failed),
      static_cast<unsigned long long>(total.kills), static_cast<unsigned long long>(total.freezes),
      static_cast<unsigned long long>(total.cuts), static_cast<unsigned long long>(total.launch_kills),
      static_cast<unsigned long long>(total.branches), static_cast<unsigned long long>(total.undos),
      static_cast<unsigned long long>(total.gone), static_cast<unsigned long long>(total.listed),
      static_cast<unsigned long long>(total.committed));
  std::printf(
      "%llu partitions; %llu commits missed, made up by %llu shifts from the anchor and %llu from the snapshot\n",
      static_cast<unsigned long long>(total.partitions), static_cast<unsigned long long>(total.behind),
      static_cast<unsigned long long>(total.shifts_anchor), static_cast<unsigned long long>(total.shifts_snapshot));
  return failed == 0 ? 0 : 1;
}
