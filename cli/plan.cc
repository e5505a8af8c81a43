// shoal plan RUN.toml: what each stage takes of memory, work and lines, and what a number of microbatches in flight is
// expected to bring and to cost; with --peers which of them should serve which stage.
#include <cstdio>

#include "cli/program.h"
#include "cli/program_memory.h"
#include "common/formatted.h"
#include "common/log.h"
#include "common/os/posix_file.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"
#include "runtime/config/derived_options.h"
#include "runtime/plan/boundary_price.h"
#include "runtime/plan/codec_price.h"
#include "runtime/plan/flight_plan.h"
#include "runtime/plan/layout_report.h"
#include "runtime/plan/line_bytes.h"
#include "runtime/plan/stage_report.h"

namespace shoal {
namespace {

struct PlanArguments {
  std::string run, peers, links;  // files; of links none: lines are as good as free
  std::string out;                // where the layout is written; empty: nowhere
  StageQuestion stages;
};

void print_row(const FlightRow& row, bool taken) {
  const std::string stages = formatted("%.2f .. %.2f", row.delays.front(), row.delays.back());
  const std::string ramp = row.ramp ? formatted("%.4g .. %.4g", row.ramp->begin, row.ramp->end) : "-";
  std::printf("%c %7llu %8.2f %14s %6.2f %11s %10.4g %7.1f %% %6.0f %% %7.2f\n", taken ? '*' : ' ',
              static_cast<unsigned long long>(row.in_flight), row.of_window, stages.c_str(), row.delay, ramp.c_str(),
              row.look_ahead, 100 * row.price, 100 * row.pipe_use, row.time);
}

// `taken`: why [sync] mode = "auto" took what it did; empty: it is given.
void print_plan(const RunConfig& config, const FlightPlan& plan, const std::string& taken) {
  std::printf("%s: %u stages x %u replicas, a step of all replicas has %llu microbatches, %llu fill the pipe\n\n",
              config.run.name.c_str(), config.pipeline.stages, config.pipeline.replicas,
              static_cast<unsigned long long>(plan.window), static_cast<unsigned long long>(plan.fill));
  std::printf("%s\n\n", training_line(config).c_str());
  std::printf("%9s %8s %14s %6s %11s %10s %9s %8s %7s\n", "in flight", "of step", "late by stage", "mean", "ramp",
              "look-ahead", "loss +", "pipe use", "time");
  for (const FlightRow& row : plan.rows) print_row(row, row.in_flight == plan.in_flight);
  const bool given = config.pipeline.in_flight.given.has_value();
  std::printf("\n%s: %s.\n",
              given ? ("in_flight = " + std::to_string(plan.in_flight) + " is given; \"auto\" would take " +
                       std::to_string(plan.automatic))
                          .c_str()
                    : ("in_flight = \"auto\" takes " + std::to_string(plan.automatic)).c_str(),
              plan.reason.c_str());
  if (!taken.empty()) std::printf("%s.\n", mode_sentence(config, taken).c_str());
  if (!plan.fillings.empty()) std::printf("To keep more under way, one of these in RUN.toml:\n");
  for (const PipeFilling& filling : plan.fillings)
    for (const std::string& line : filling.lines)
      std::printf("  %-36s # %s\n", line.c_str(),
                  &line == &filling.lines.front() ? text_of(filling).c_str() : "with the line above");
  std::printf(
      "Expected, not measured. Late: inner steps. Loss: validation, over that without delay after the same tokens.\n"
      "Time: to the same loss; 1 is a full pipe whose gradients are never late.\n");
}

void print_json(const RunConfig& config, const FlightPlan& plan, const std::string& taken,
                const StageQuestion& stages) {
  Json out = {{"schema", "shoal.plan/1"},
              {"run", config.run.name},
              {"stages", config.pipeline.stages},
              {"replicas", config.pipeline.replicas},
              {"step_microbatches", plan.window},
              {"fill", plan.fill},
              {"in_flight", plan.in_flight},
              {"lr", config.optimizer.lr},
              {"warmup_tokens", config.schedule.warmup_tokens},
              {"step_tokens", plan.window * config.targets_per_microbatch()},
              {"inner_steps", inner_steps_of_run(config)},
              {"auto", plan.automatic},
              {"reason", plan.reason},
              {"mode", config.gradients_late() ? "overlap" : "drain"},
              {"mode_reason", taken.empty() ? Json() : Json(taken)},
              {"warning", nullptr},
              {"codec_warning", codec_warning(config)},
              {"boundary_warning", boundary_warning(config)},
              {"round_warning", round_warning(config)}};
  if (plan.warning) out.set("warning", *plan.warning);
  Json fillings = Json::array(), rows = Json::array();
  for (const PipeFilling& filling : plan.fillings)
    fillings.add({{"lines", filling.lines},
                  {"in_flight", filling.in_flight},
                  {"pipe_use", filling.pipe_use},
                  {"price", filling.price},
                  {"steps", filling.steps > 0 ? Json(filling.steps) : Json()}});
  for (const FlightRow& row : plan.rows)
    rows.add({{"in_flight", row.in_flight},
              {"of_step", row.of_window},
              {"delays", row.delays},
              {"delay", row.delay},
              {"look_ahead", row.look_ahead},
              {"ramp", row.ramp ? Json::array({row.ramp->begin, row.ramp->end}) : Json()},
              {"price", row.price},
              {"pipe_use", row.pipe_use},
              {"time", row.time}});
  out.set("fillings", fillings);
  out.set("rows", rows);
  add_stages(config, stages, out);
  std::printf("%s\n", out.text().c_str());
}

Status write_layout(const PeerList& list, const PlannedLayout& planned, std::uint16_t stages, const std::string& path) {
  PeerList out = list;
  out.stages = stages;
  std::string without;
  for (std::size_t peer = 0; peer < out.peers.size(); ++peer) {
    out.peers[peer].stage = planned.layout[peer];
    if (!out.peers[peer].key) without += " " + out.peers[peer].name;
  }
  SHOAL_TRY(replace_file(path, {Bytes::copy_of(std::string_view(text_of(out)))}));
  if (!without.empty())
    log_warning(
        path, ": without a key no run knows", without,
        ". HINT: key = \"...\", as `shoal key` prints it on that machine; launch --layout refuses the file until then");
  return {};
}

// Which peer serves which stage.
Status plan_peers(const RunConfig& config, const PlanArguments& arguments, bool json) {
  SHOAL_ASSIGN(const PeerList list, load_peer_list(arguments.peers));
  std::optional<LinkTable> links;
  if (!arguments.links.empty()) {
    SHOAL_ASSIGN(links, load_links(arguments.links));
  }
  SHOAL_ASSIGN(const LayoutShape of, layout_shape(config, list, links));
  SHOAL_ASSIGN(const PlannedLayout planned, plan_layout(of.shape));
  const LayoutReport report{config, list, of, planned, LayoutCost(of.shape).story(planned.layout)};
  std::printf("%s", (json ? json_of(report).text() + "\n" : text_of(report)).c_str());
  return arguments.out.empty() ? Status() : write_layout(list, planned, config.pipeline.stages, arguments.out);
}

int run(PlanArguments& arguments, bool json) {
  auto config = load_config(arguments.run);
  if (!config.ok()) return fail_config(config.error());
  const std::string taken = take_mode(*config);
  if (!arguments.peers.empty()) {
    const Status planned = plan_peers(*config, arguments, json);
    return planned.ok() ? kExitOk : fail(planned.error());
  }
  const FlightPlan plan = plan_flight(*config);
  if (config->executor.kind == ExecutorKind::kTorch) arguments.stages.program_bytes = measured_program_bytes();
  if (json) {
    print_json(*config, plan, taken, arguments.stages);
  } else {
    print_plan(*config, plan, taken);
    std::printf("%s", stages_text(*config, arguments.stages).c_str());
    if (plan.warning) log_warning(*plan.warning);
    if (const auto warning = codec_warning(*config)) log_warning(*warning);
    if (const auto warning = boundary_warning(*config)) log_warning(*warning);
    if (const auto warning = round_warning(*config)) log_warning(*warning);
    if (const auto warning = few_steps_warning(*config)) log_warning(*warning);
  }
  return kExitOk;
}

}  // namespace

void add_plan(Command& app, Program& program) {
  Command command = app.add_subcommand(
      "plan", "what each stage takes, and what microbatches in flight are expected to bring and to cost");
  auto arguments = std::make_shared<PlanArguments>();
  StageQuestion& stages = arguments->stages;
  command.add_option("run", arguments->run, "the run's file").required().type_name("RUN.toml");
  Option peers = command
                     .add_option("--peers", arguments->peers,
                                 "plan which of these peers serves which stage (docs/FILES.md, lists of peers)")
                     .type_name("FILE");
  command.add_option("--links", arguments->links, "lines between their regions: a,b,delay_ms,bandwidth_mbps, as CSV")
      .type_name("FILE")
      .needs(peers);
  command.add_option("-o,--out", arguments->out, "write the layout there, for `shoal launch --layout`")
      .type_name("FILE")
      .needs(peers);
  command
      .add_option("--memory", stages.memory_bytes,
                  "of a peer, as 8GiB: into how many stages the model must be cut, and what it holds of each")
      .bytes()
      .excludes(peers);
  command.add_option("--tflops", stages.tflops, "that each peer makes of a training").in(1e-6, 1e6).excludes(peers);
  command.add_option("--mbit", stages.mbit, "Mbit/s of each peer's line, each way (default: free)")
      .in(1e-3, 1e7)
      .excludes(peers);
  command.add_option("--rtt", stages.rtt_ms, "milliseconds between any two, there and back (default: 0)")
      .in(0.0, 1e5)
      .excludes(peers);
  run_when_named(command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global.json); });
}

}  // namespace shoal
