#include "runtime/plan/stage_report.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/formatted.h"
#include "layout/layout_cost.h"
#include "runtime/plan/boundary_report.h"
#include "runtime/plan/flight_plan.h"
#include "runtime/plan/layout_shape.h"
#include "runtime/plan/line_bytes.h"
#include "runtime/plan/memory_fit.h"
#include "runtime/plan/stage_memory.h"
#include "runtime/plan/stage_work.h"

namespace shoal {
namespace {

constexpr double kMebi = 1 << 20;

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / kMebi; }

// As many peers of one kind as the run wants, each stage's beside each other.
SwarmShape shape_of(const RunConfig& config, const StageQuestion& question) {
  PeerList list;
  for (std::size_t i = 0; i < std::size_t{config.pipeline.stages} * config.pipeline.replicas; ++i) {
    NamedPeer peer{.name = std::to_string(i), .flops = std::max(question.tflops, 1e-6) * 1e12};
    if (question.mbit > 0) peer.up_mbps = peer.down_mbps = question.mbit;
    list.peers.push_back(std::move(peer));
  }
  const ShapeLine line{.delay = question.rtt_ms / 2000};
  const auto made = layout_shape(config, list, LinkTable{.regions = {""}, .lines = {line}});
  SHOAL_CHECK(made.ok());
  return made->shape;
}

struct StageRow {
  StageSpec spec;
  Recompute recompute = Recompute::kNone;  // with "auto" as a peer takes it
  std::uint64_t entries = 0;               // at a time there
  bool fits = true;                        // in --memory
  StageMemory memory{};
  double flops = 0;  // of a token
  LineBytes line{};
  double round = 0;  // bytes that it sends in rounds, of a token
};

struct Speed {
  double tokens = 0;  // a second
  std::string binds{};
  std::uint64_t needed = 0;  // in flight, for what devices and lines allow
};

struct Plan {
  std::vector<StageRow> rows;
  std::uint64_t program = 0, entries = 0;  // entries: where nobody bounds the memory
  std::optional<std::uint16_t> stages{};   // that --memory asks for
  std::optional<Speed> speed{};
  std::optional<BoundaryFigures> boundary{};
};

// What fills first, or in flight where that is fewer than devices and lines take.
Speed speed_of(const RunConfig& config, const SwarmShape& shape, const std::vector<StageRow>& rows) {
  Layout layout;
  for (std::size_t i = 0; i < shape.peers.size(); ++i)
    layout.push_back(static_cast<std::uint16_t>(i / config.pipeline.replicas));
  const LayoutStory story = LayoutCost(shape).story(layout);
  const double targets = static_cast<double>(config.targets_per_microbatch());
  const std::uint64_t in_flight = in_flight_of(config);
  Speed speed{.needed = static_cast<std::uint64_t>(std::ceil(story.in_flight * (1 - 1e-9)))};
  speed.tokens = targets * std::min(story.rate, story.rate_with(static_cast<double>(in_flight)));
  const Bind bind = story.binds.empty() ? Bind{} : story.binds.front();
  const StageRow& row = rows[std::min(bind.stage, rows.size() - 1)];
  const std::string stage = " of stage " + std::to_string(bind.stage);
  if (in_flight < speed.needed)
    speed.binds = "latency: " + std::to_string(in_flight) + " in flight";
  else if (bind.what == Binding::kCompute)
    speed.binds = "compute" + stage;
  else if (bind.what == Binding::kRound)
    speed.binds = "rounds" + stage;
  else
    speed.binds = (row.line.up >= row.line.down ? "up" : "down") + stage;
  return speed;
}

// What a peer with --memory would take, or one that knows of no bound.
void choose_for(StageRow& row, const RunConfig& config, const StageQuestion& question, const Plan& plan) {
  const auto given = question.memory_bytes > 0 ? std::optional(question.memory_bytes) : std::nullopt;
  const auto room = room_for(config, row.spec, usual_credits(config), 0, plan.program, given);
  row.fits = room.ok();
  row.recompute = room.ok() ? room->recompute : recomputes_of(config).front();
  row.entries = room.ok() ? entries_with(config, room->credits) : plan.entries;
  row.memory = stage_memory(with_recompute(config, row.recompute), row.spec);
}

Plan plan_of(const RunConfig& config, const StageQuestion& question) {
  Plan plan{.rows = {}, .program = question.program_bytes, .entries = entries_with(config, usual_credits(config))};
  const auto specs = split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage);
  SHOAL_CHECK(specs.ok());
  SwarmShape shape = shape_of(config, question);
  const double targets = static_cast<double>(config.targets_per_microbatch());
  const std::vector<LineBytes> lines = line_bytes(config);
  const std::vector<double> rounds = round_bytes(config);
  for (const StageSpec& spec : *specs) {
    StageRow row;
    row.spec = spec;
    row.line = lines[spec.stage.value];
    row.round = rounds[spec.stage.value];
    choose_for(row, config, question, plan);
    ShapeStage& stage = shape.stages[spec.stage.value];
    stage.work = stage_work(with_recompute(config, row.recompute))[spec.stage.value];
    row.flops = stage.work / targets;
    plan.rows.push_back(std::move(row));
  }
  if (question.memory_bytes > 0) plan.stages = stages_within(question.memory_bytes, config, plan.program);
  if (question.tflops > 0) plan.speed = speed_of(config, shape, plan.rows);
  const double flops = std::ranges::max_element(plan.rows, {}, &StageRow::flops)->flops;
  plan.boundary = boundary_figures(config, question.mbit, question.tflops * 1e12 / flops);
  return plan;
}

std::string speed_text(const Plan& plan, const StageQuestion& question) {
  if (!plan.speed) return "--tflops N, --mbit N and --rtt MS of the peers: what they make, and what binds.\n";
  return formatted("Peers of %.4g TFLOPS", question.tflops) +
         (question.mbit > 0 ? formatted(", %.4g Mbit/s each way", question.mbit) : "") +
         (question.rtt_ms > 0 ? formatted(", %.4g ms there and back", question.rtt_ms) : "") +
         formatted(": at most %.4g tokens/s. What binds: %s. Full devices and lines take %llu in flight.\n",
                   plan.speed->tokens, plan.speed->binds.c_str(), static_cast<unsigned long long>(plan.speed->needed));
}

std::string need_text(const RunConfig& config, const Plan& plan, const StageQuestion& question) {
  if (question.memory_bytes == 0) return "";
  const double memory = mebibytes(question.memory_bytes);
  if (!plan.stages) return formatted("With %.0f MiB a peer not even a layer a stage fits.\n", memory);
  return formatted("With %.0f MiB a peer the model needs %u stage%s at least; the run has %u.\n", memory, *plan.stages,
                   *plan.stages == 1 ? "" : "s", config.pipeline.stages);
}

Json json_of(const StageRow& row, const Plan& plan) {
  const StageMemory& m = row.memory;
  return {{"stage", row.spec.stage.value},
          {"first_layer", row.spec.first_layer},
          {"end_layer", row.spec.end_layer},
          {"parameters", m.trained},
          {"recompute", name_of(row.recompute)},
          {"microbatches", row.entries},
          {"fits", row.fits},
          {"bytes",
           {{"parameters", m.parameters},
            {"second_buffer", m.second_buffer},
            {"moments", m.moments},
            {"accumulators", m.accumulators},
            {"anchor", m.anchor},
            {"bf16_copies", m.narrow},
            {"base", m.base},
            {"codec_bases", m.bases},
            {"state", m.state()},
            {"graph", m.graph},
            {"layer_inputs", m.inputs},
            {"frames", m.frames},
            {"microbatch", m.entry()},
            {"gradients", m.gradients},
            {"round", m.round},
            {"loss", m.loss},
            {"image", m.image},
            {"peak", plan.program + m.peak(row.entries)},
            {"needed", plan.program + m.needed(row.entries)}}},
          {"flops_per_token", row.flops},
          {"forward_bytes_per_token", row.line.forward},
          {"backward_bytes_per_token", row.line.backward},
          {"up_bytes_per_token", row.line.up},
          {"down_bytes_per_token", row.line.down},
          {"round_bytes_per_token", row.round}};
}

}  // namespace

std::string stages_text(const RunConfig& config, const StageQuestion& question) {
  if (config.executor.kind != ExecutorKind::kTorch) return "";
  const Plan plan = plan_of(config, question);
  std::string text = formatted(
      "\nMiB of a peer's device, by stage, with so many microbatches at a time, beside %.0f of the program:\n",
      mebibytes(plan.program));
  text += formatted("%5s %9s %7s %7s %7s %7s %6s %6s %7s %7s %6s %7s %9s %6s %8s %8s\n", "stage", "params", "weights",
                    "moments", "windows", "anchor", "bf16", "bases", "graph", "entry", "grads", "round", "recompute",
                    "many", "peak", "needs");
  for (const StageRow& row : plan.rows) {
    const StageMemory& m = row.memory;
    text += formatted(
        "%5u %8.4gM %7.0f %7.0f %7.0f %7.0f %6.0f %6.0f %7.1f %7.1f %6.0f %7.0f %9s %6llu %8.0f %8.0f%s\n",
        row.spec.stage.value, static_cast<double>(m.trained) / 1e6, mebibytes(m.parameters + m.second_buffer + m.base),
        mebibytes(m.moments), mebibytes(m.accumulators), mebibytes(m.anchor), mebibytes(m.narrow), mebibytes(m.bases),
        mebibytes(m.graph), mebibytes(m.entry()), mebibytes(m.gradients), mebibytes(std::max(m.round, m.prepared)),
        name_of(row.recompute).data(), static_cast<unsigned long long>(row.entries),
        mebibytes(plan.program + m.peak(row.entries)), mebibytes(plan.program + m.needed(row.entries)),
        row.fits ? "" : " does not fit");
  }
  text += "Needs: with an image of the state beside, for a joiner or a checkpoint.\n\n";
  text += formatted("%5s %13s %15s %15s %12s %12s %12s\n", "stage", "MFLOP/token", "B/token down", "B/token back",
                    "B/token sent", "B/token got", "in rounds");
  for (const StageRow& row : plan.rows)
    text += formatted("%5u %13.4g %15.4g %15.4g %12.4g %12.4g %12.4g\n", row.spec.stage.value, row.flops / 1e6,
                      row.line.forward, row.line.backward, row.line.up, row.line.down, row.round);
  return text + need_text(config, plan, question) + speed_text(plan, question) +
         (plan.boundary ? text_of(*plan.boundary) : "");
}

void add_stages(const RunConfig& config, const StageQuestion& question, Json& out) {
  if (config.executor.kind != ExecutorKind::kTorch) return;
  const Plan plan = plan_of(config, question);
  Json by_stage = Json::array();
  for (const StageRow& row : plan.rows) by_stage.add(json_of(row, plan));
  out.set("memory", {{"program_bytes", plan.program},
                     {"microbatches", plan.entries},
                     {"given_bytes", question.memory_bytes > 0 ? Json(question.memory_bytes) : Json()},
                     {"stages_needed", plan.stages}});
  out.set("by_stage", by_stage);
  out.set("boundary", plan.boundary ? json_of(*plan.boundary) : Json());
  out.set("speed", nullptr);
  if (plan.speed)
    out.set(
        "speed",
        {{"tokens_per_s", plan.speed->tokens}, {"binds", plan.speed->binds}, {"in_flight_needed", plan.speed->needed}});
}

}  // namespace shoal
