// shoal-sim: whole swarms under random faults in virtual time, seed after seed.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/log.h"
#include "common/os/program_start.h"
#include "common/program/options.h"
#include "sim/scale.h"
#include "sim/scenario.h"

namespace shoal {
namespace {

struct Arguments {
  std::uint64_t first = 1, count = 100, microbatches = 100'000;
  std::uint16_t stages = 3, replicas = 2;
  std::uint32_t boundary = 0;
  std::string rule = "diloco";
  double round_budget_s = 0, fault_every_s = 2;
  std::vector<std::string> kinds;
  FaultOptions faults;
  ScaleOptions scale{.peers = 0};  // 0: seeds
  double scale_seconds = 30, unlike = 1, unreachable = 0;
  bool home_launch = false, standby = false, checkpoints = false, verbose = false, report = false, json = false,
       list = false, stop_at_first = false;
};

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const FaultRow& row : fault_table()) names.emplace_back(row.name);
  return names;
}

void add_options(Command app, Arguments& a) {
  app.add_option("--seed,--first", a.first, "first seed").show_default();
  app.add_option("--seeds", a.count, "how many seeds").show_default();
  app.add_option("--microbatches", a.microbatches, "a run ends after so many, or when its faults are over")
      .show_default();
  app.add_option("--stages", a.stages, "stages").show_default();
  app.add_option("--replicas", a.replicas, "peers of a stage").show_default();
  app.add_option("--rule", a.rule, "outer rule").one_of({std::begin(kRuleNames), std::end(kRuleNames)}).show_default();
  app.add_option("--round-budget", a.round_budget_s, "seconds a round may take: less, and more members miss one")
      .show_default();
  app.add_option("--fault-every", a.fault_every_s, "seconds between two faults, on average").show_default();
  app.add_option("--faults", a.kinds, "only these kinds; without it each seed draws a subset of all")
      .separated_by(',')
      .one_of(kind_names());
  app.add_option("--lasting", a.faults.lasting, "share of the faults that last until a core of the swarm is healed")
      .in(0.0, 1.0)
      .show_default();
  app.add_flag("--lift-bounds", a.faults.lift_bounds, "faults beyond what is known to be survived; see --list-faults");
  app.add_flag("--list-faults", a.list, "tell the kinds of faults and their bounds, and run nothing");
  app.add_flag("--checkpoints", a.checkpoints, "in every seed: peers write them, and last holders die too");
  app.add_flag("--standby", a.standby, "in every seed: a process waits beside the launching process for its run");
  app.add_option(
         "--unlike", a.unlike,
         "in every seed: the slowest machine takes up to so many times what the fastest does, so that peers are "
         "asked to move to another stage (three a stage are needed: --replicas)")
      .in(1.0, 1000.0)
      .show_default();
  app.add_option("--unreachable", a.unreachable,
                 "in every seed: this share of the peers of each stage cannot be dialled, the launching process "
                 "relays for them, and faults of routers and of the relay are among those drawn")
      .in(0.0, 1.0)
      .show_default();
  app.add_flag("--home-launch", a.home_launch,
               "in every seed: nobody can dial the launching process, which is called at a relay on a host of its own");
  app.add_option("--boundary", a.boundary,
                 "in every seed: the model sends so many of its 8 values between stages; 0 = all")
      .in(0u, 7u)
      .show_default();
  app.add_flag("--verbose", a.verbose, "tell every story, not only the broken ones");
  app.add_flag("--stop-at-first", a.stop_at_first, "end the batch with the first seed that broke a rule");
  app.add_flag("--report", a.report, "end with the figures of the batch, kind by kind");
  app.add_flag("--json", a.json, "the report as one object on the last line");
  app.add_option("--peers", a.scale.peers, "instead of seeds: one swarm of so many peers, and what it costs");
  app.add_option("--seconds", a.scale_seconds, "with --peers: measured, of virtual time").show_default();
}

int tell_scale(const Arguments& a) {
  ScaleOptions options = a.scale;
  options.seed = a.first;
  options.measured = from_seconds(a.scale_seconds);
  const ScaleFigures figures = measure_scale(options);
  std::printf("%s%s", text_of(figures).c_str(), a.json ? (json_of(figures) + "\n").c_str() : "");
  return figures.serving > 0 ? 0 : 1;
}

void cut_model(const Arguments& a, ModelSection& model) {
  model.boundary = a.boundary;
  model.boundary_table = model.dim / 2;
  for (std::uint32_t layer = 1; layer < model.layers; ++layer) model.cuts.push_back(layer);
}

ScenarioResult run_seed(const Arguments& a, std::uint64_t seed) {
  SwarmOptions options;
  options.seed = seed;
  options.stages = a.stages;
  options.replicas = a.replicas;
  options.config = small_config(*rule_named(a.rule), a.stages, a.microbatches);
  options.config.pipeline.replicas = a.replicas;
  if (a.boundary > 0) cut_model(a, options.config.model);
  options.round_budget = from_seconds(a.round_budget_s);
  options.dht = true;
  options.standby = a.standby;
  options.unlike = a.unlike;
  options.reach.unreachable = a.unreachable;
  options.reach.home_launch = a.home_launch;
  if (a.unreachable > 0 || a.home_launch) options.reach.relay_bytes_per_second = kSimRelayBytesPerSecond;
  be_as_seed_draws(options);
  if (a.checkpoints) keep_checkpoints(options);
  return run_scenario(std::move(options), a.faults);
}

unsigned long long n(std::uint64_t value) { return static_cast<unsigned long long>(value); }

void tell(std::uint64_t seed, const ScenarioResult& result) {
  std::printf("seed %llu: %zu rules broken, %llu faults, %.1f virtual s, trace %016llx\n", n(seed),
              result.broken.size(), n(result.faults), result.virtual_seconds, n(result.trace));
  for (const std::string& line : result.broken) std::printf("  BROKEN %s\n", line.c_str());
  for (const std::string& line : result.story) std::printf("  %s\n", line.c_str());
}

void tell_total(std::uint64_t seeds, std::uint64_t failed, const ScenarioResult& total) {
  std::printf(
      "%llu seeds, %llu with a broken rule, judged %llu times; %llu faults; %llu branches, %llu undos, %llu commits "
      "answered gone, %llu lost, %llu committed\n",
      n(seeds), n(failed), n(total.looks), n(total.faults), n(total.branches), n(total.undos), n(total.gone),
      n(total.lost), n(total.committed));
  std::printf(
      "%llu commits missed, made up by %llu shifts from the anchor and %llu from the snapshot; %llu times a stage went "
      "back\n",
      n(total.behind), n(total.shifts_anchor), n(total.shifts_snapshot), n(total.restores));
  if (total.joined > 0)
    std::printf("%llu times a relay joined two, and carried %.1f MB\n", n(total.joined),
                static_cast<double>(total.carried) / 1e6);
  if (total.takeovers > 0) std::printf("%llu times a standby went on\n", n(total.takeovers));
  if (total.asked_to_move > 0)
    std::printf("%llu times a peer was asked to move; %llu served where they were wanted, in %llu seeds\n",
                n(total.asked_to_move), n(total.moves), n(total.lives_with_moves));
}

void report(const Arguments& a, double seconds, const ScenarioResult& total) {
  std::printf("%.1f s, %.1f virtual s, %.1f faults a seed\n", seconds, total.virtual_seconds,
              static_cast<double>(total.faults) / static_cast<double>(std::max<std::uint64_t>(1, a.count)));
  for (const auto& [name, count] : total.fault_kinds) std::printf("  fault %-18s %llu\n", name.c_str(), n(count));
  for (const auto& [name, count] : total.error_codes) std::printf("  error %-18s %llu\n", name.c_str(), n(count));
}

void report_json(const Arguments& a, std::uint64_t failed, double seconds, const ScenarioResult& total) {
  const auto milli = [](double value) { return std::round(value * 1000) / 1000; };
  const nlohmann::ordered_json out = {{"seeds", a.count},
                                      {"failed", failed},
                                      {"seconds", milli(seconds)},
                                      {"virtual_seconds", milli(total.virtual_seconds)},
                                      {"asked_to_move", total.asked_to_move},
                                      {"moves", total.moves},
                                      {"seeds_with_moves", total.lives_with_moves},
                                      {"fault_kinds", nlohmann::ordered_json(total.fault_kinds)},
                                      {"error_codes", nlohmann::ordered_json(total.error_codes)}};
  std::printf("%s\n", out.dump().c_str());
}

void list_faults() {
  for (const FaultRow& row : fault_table())
    std::printf("%-18s %5.1f to %5.1f s (lifted %5.1f), strength %g to %g (lifted %g)%s%s\n", row.name,
                seconds_of(row.shortest), seconds_of(row.longest), seconds_of(row.unbounded), row.weakest,
                row.strongest, row.beyond, *row.bound == '\0' ? "" : "; bound: ", row.bound);
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  using namespace shoal;
  hold_standard_descriptors();
  CommandLine line(
      "Runs swarms of the product's own code in virtual time under random faults and checks what was counted",
      "shoal-sim", "shoal-sim " SHOAL_VERSION);
  Arguments arguments;
  add_options(line.top(), arguments);
  if (const auto over = line.parse_or_say(argc, argv)) return *over;
  if (arguments.list) return list_faults(), 0;
  for (const FaultRow& row : fault_table())
    for (const std::string& name : arguments.kinds)
      if (name == row.name) arguments.faults.only.insert(row.kind);
  arguments.faults.nat = arguments.unreachable > 0;
  arguments.faults.relay = arguments.unreachable > 0 || arguments.home_launch;
  arguments.faults.mean_between = from_seconds(arguments.fault_every_s);
  set_log_level(LogLevel::kError);
  if (arguments.scale.peers > 0) return tell_scale(arguments);
  const auto began = std::chrono::steady_clock::now();
  std::uint64_t failed = 0;
  ScenarioResult total;
  for (std::uint64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    const ScenarioResult result = run_seed(arguments, seed);
    total.add(result);
    failed += !result.broken.empty();
    if (!result.broken.empty() || arguments.verbose) tell(seed, result);
    std::fflush(stdout);
    if (arguments.stop_at_first && failed > 0) arguments.count = seed - arguments.first + 1;
  }
  const double seconds = seconds_of(std::chrono::steady_clock::now() - began);
  tell_total(arguments.count, failed, total);
  if (arguments.report) report(arguments, seconds, total);
  if (arguments.json) report_json(arguments, failed, seconds, total);
  return failed == 0 ? 0 : 1;
}
