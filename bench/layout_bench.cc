#include "bench/layout_bench.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/dtfm_cost.h"
#include "common/check.h"
#include "layout/layout_plan.h"

namespace shoal {
namespace {

constexpr std::size_t kDrawn = 1000, kDrawnOfOurs = 50;  // layouts whose mean is shown
constexpr std::size_t kStartsDrawn = 3;
constexpr std::uint64_t kSeed = 1, kAllMost = 20'000'000;
constexpr SearchBounds kDtfmBounds{.seed = kSeed, .kicks = 16, .asked_max = 60'000};
// Ours: a microbatch is one of DT-FM's sequences, a pass of a stage takes a device 50 ms there and back (2 teraflop on
// a V100 that makes 40 a second), and a round follows ten steps of 61 sequences with deltas in int8: shoal's defaults.
constexpr double kPass = 0.05, kSequenceBytes = 2048.0 * 2048 * 2, kInnerSteps = 10;
constexpr std::size_t kUnlikeDrawn = 10, kUnlikePeers = 9, kUnlikeStages = 3;
constexpr double kUnlikeSpread = 0.5;  // sigma of the log of speeds

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct CaseRow {
  std::string name{};
  std::size_t peers = 0, stages = 0;  // of DT-FM: devices and groups
  double plan_s = 0;
};

// `figures`: by the cost.
void print_json(const char* cost, const CaseRow& row, const nlohmann::ordered_json& figures) {
  nlohmann::ordered_json line = {{"cost", cost}, {"case", row.name}, {"peers", row.peers}, {"stages", row.stages}};
  line.update(figures);
  line["plan_seconds"] = row.plan_s;
  std::printf("%s\n", line.dump().c_str());
}
nlohmann::ordered_json or_null(std::optional<double> figure) {
  return figure ? nlohmann::ordered_json(*figure) : nullptr;
}

struct DtfmRow : CaseRow {
  double drawn = 0, ordered = 0;  // means: as drawn, and with the best order and pairs
  DtfmCost planned{};
  std::optional<double> best{};
};

DtfmRow measure_dtfm(const DtfmCase& of, bool all) {
  DtfmRow row{{.name = of.name, .peers = of.shape.peers.size(), .stages = of.groups}};
  Rng rng(kSeed);
  for (std::size_t i = 0; i < kDrawn; ++i) {
    const Layout layout = drawn_layout(row.peers, of.groups, rng);
    row.drawn += dtfm_cost_as_drawn(of.shape, of.groups, layout).total() / kDrawn;
    row.ordered += dtfm_cost(of.shape, of.groups, layout).total() / kDrawn;
  }
  const LayoutProblem problem = dtfm_problem(of.shape, of.groups);
  const auto begin = Clock::now();
  const FoundLayout found = climb(problem, dtfm_starts(of.shape, of.groups, kStartsDrawn, kSeed), kDtfmBounds);
  row.plan_s = seconds_since(begin);
  row.planned = dtfm_cost(of.shape, of.groups, found.layout);
  if (!all) return row;
  LayoutProblem exact = problem;
  exact.worth = [&](const Layout& layout, double) { return -dtfm_cost(of.shape, of.groups, layout).total(); };
  if (const auto best = best_of_all(exact, kAllMost)) row.best = -best->worth;
  return row;
}

void print(const DtfmRow& row, bool json) {
  if (json)
    return print_json("dtfm", row,
                      {{"drawn_s", row.drawn},
                       {"drawn_in_order_s", row.ordered},
                       {"planned_s", row.planned.total()},
                       {"planned_data_s", row.planned.data},
                       {"planned_pipe_s", row.planned.pipe},
                       {"best_s", or_null(row.best)}});
  std::printf("%-24s %7zu %6zu %9.2f %9.2f %9.2f %7.2f %7.2f ", row.name.c_str(), row.peers, row.stages, row.drawn,
              row.ordered, row.planned.total(), row.planned.data, row.planned.pipe);
  if (row.best)
    std::printf("%9.2f %7.2f %%", *row.best, 100 * (row.planned.total() / *row.best - 1));
  else
    std::printf("%9s %9s", "-", "-");
  std::printf(" %7.2f\n", row.plan_s);
}

SwarmShape swarm_of(SwarmShape shape, std::size_t stages) {
  const double model_bytes = 1.3e9;  // int8
  shape.stages.assign(stages, {.work = kPass,
                               .forward_bytes = kSequenceBytes,
                               .backward_bytes = kSequenceBytes,
                               .round_bytes = model_bytes / static_cast<double>(stages)});
  shape.round_microbatches = kInnerSteps * kDtfmSequences;
  return shape;
}

struct OurRow : CaseRow {
  double drawn_rate = 0, drawn_in_flight = 0, drawn_worth = 0;  // means
  LayoutFigures planned{};
  std::optional<double> best_worth{};
};

OurRow measure_ours(const std::string& name, const SwarmShape& shape, bool all) {
  OurRow row{{.name = name, .peers = shape.peers.size(), .stages = shape.stages.size()}};
  const LayoutCost cost(shape);
  Rng rng(kSeed);
  for (std::size_t i = 0; i < kDrawnOfOurs; ++i) {
    const LayoutFigures figures = cost.figures(drawn_layout(row.peers, row.stages, rng));
    row.drawn_rate += figures.rate / kDrawnOfOurs;
    row.drawn_in_flight += figures.in_flight / kDrawnOfOurs;
    row.drawn_worth += figures.worth / kDrawnOfOurs;
  }
  const LayoutProblem problem = problem_of(shape, cost);
  const auto begin = Clock::now();
  const auto starts = layout_starts(shape);
  SHOAL_CHECK(starts.ok());
  // Not plan_layout(), which would look at all of a small one.
  row.planned = cost.figures(climb(problem, *starts).layout);
  row.plan_s = seconds_since(begin);
  if (!all) return row;
  if (const auto best = best_of_all(problem, kAllMost)) row.best_worth = cost.figures(best->layout).worth;
  return row;
}

void print(const OurRow& row, bool json) {
  if (json)
    return print_json("shoal", row,
                      {{"drawn_rate", row.drawn_rate},
                       {"drawn_in_flight", row.drawn_in_flight},
                       {"drawn_worth", row.drawn_worth},
                       {"planned_rate", row.planned.rate},
                       {"planned_in_flight", row.planned.in_flight},
                       {"planned_round_share", row.planned.round_share},
                       {"planned_worth", row.planned.worth},
                       {"best_worth", or_null(row.best_worth)}});
  std::printf("%-24s %7zu %6zu %7.2f %7.1f %7.2f %7.1f %7.1f %% %7.2f ", row.name.c_str(), row.peers, row.stages,
              row.drawn_rate, row.drawn_in_flight, row.planned.rate, row.planned.in_flight,
              100 * row.planned.round_share, row.planned.worth / row.drawn_worth);
  if (row.best_worth)
    std::printf("%7.2f %%", 100 * row.planned.worth / *row.best_worth);
  else
    std::printf("%9s", "-");
  std::printf(" %7.2f\n", row.plan_s);
}

// Peers of unlike speed over the world's regions, one each and one more.
SwarmShape unlike(const SwarmShape& world, std::uint64_t seed) {
  Rng rng(seed);
  SwarmShape shape = world;
  shape.peers.clear();
  for (std::size_t peer = 0; peer < kUnlikePeers; ++peer)
    shape.peers.push_back({.name = std::to_string(peer),
                           .region = peer % shape.regions,
                           .speed = std::exp(kUnlikeSpread * rng.normal())});
  return swarm_of(shape, kUnlikeStages);
}

void run_dtfm(const LayoutBenchOptions& options, const std::vector<DtfmCase>& more) {
  if (!options.json)
    std::printf("DT-FM's cost: seconds of a step\n%-24s %7s %6s %9s %9s %9s %7s %7s %9s %9s %7s\n", "case", "devices",
                "groups", "drawn", "in order", "planned", "data", "pipe", "best", "above", "plan s");
  for (const DtfmCase& of : dtfm_cases(CaseSize::kFull)) print(measure_dtfm(of, of.shape.regions <= 2), options.json);
  for (DtfmCase of : dtfm_cases(CaseSize::kSmall)) {
    of.name += ", small";
    print(measure_dtfm(of, true), options.json);
  }
  for (const DtfmCase& of : more) print(measure_dtfm(of, false), options.json);
}

void run_ours(const LayoutBenchOptions& options, const std::vector<DtfmCase>& more) {
  if (!options.json)
    std::printf(
        "\nshoal's bound: microbatches a second, and those in flight that it takes\n"
        "%-24s %7s %6s %7s %7s %7s %7s %9s %7s %9s %7s\n",
        "case", "peers", "stages", "drawn", "flight", "planned", "flight", "rounds", "worth x", "of best", "plan s");
  for (const DtfmCase& of : dtfm_cases(CaseSize::kFull))
    print(measure_ours(of.name, swarm_of(of.shape, of.groups), false), options.json);
  const std::vector<DtfmCase> tiny = dtfm_cases(CaseSize::kTiny);
  for (const DtfmCase& of : tiny)
    print(measure_ours(of.name + ", small", swarm_of(of.shape, of.groups), true), options.json);
  for (std::uint64_t seed = 1; seed <= kUnlikeDrawn; ++seed)
    print(measure_ours("world, unlike " + std::to_string(seed), unlike(tiny.back().shape, seed), true), options.json);
  for (const DtfmCase& of : more) print(measure_ours(of.name, swarm_of(of.shape, of.groups), false), options.json);
}

}  // namespace

Status run_layout_bench(const LayoutBenchOptions& options) {
  std::vector<DtfmCase> more;
  for (const std::string& path : options.links) {
    SHOAL_ASSIGN(const LinkTable links, load_links(path));
    more.push_back(case_of_links(std::filesystem::path(path).stem().string(), links));
  }
  run_dtfm(options, more);
  run_ours(options, more);
  return {};
}

}  // namespace shoal
