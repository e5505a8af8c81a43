// shoal fit FOLDER DIR: a model that was trained without a narrow boundary gets one, fitted to a text.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

#include "cli/executors.h"
#include "cli/program.h"
#include "cli/published_folder.h"
#include "common/log.h"
#include "common/os/batch_work.h"
#include "common/os/new_files.h"
#include "common/os/stop_signals.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "events/headway.h"
#include "runtime/config/derived_options.h"
#include "runtime/data/samples.h"
#include "stages/boundary.h"
#include "stages/boundary_fit.h"
#include "stages/host_coder.h"
#include "stages/pretrained/pretrained_folder.h"
#include "stages/pretrained/published_model.h"
#include "text/text_ends.h"
#include "text/token_format.h"

namespace shoal {
namespace {

constexpr std::uint32_t kUsualTable = UINT32_MAX;
constexpr std::size_t kJudgedMin = 16, kJudgedShare = 8;  // sequences; of those that are fitted

struct FitArguments {
  std::string folder, out, text, width = "auto", tokenizer, type = std::string(kPublishedTypeNames[0]);
  std::uint32_t boundary = 0, table = kUsualTable, positions = 0;
  std::uint16_t stages = 0;
  std::uint64_t tokens = 65536;
  ComputeOptions compute{.forward_only = true};
};

// What crosses the stages at the place where the last one ended.
struct Crossing {
  SentText fitted;         // by which the cuts are fitted
  SentText judged, plain;  // held out of that: through the cuts so far, and without
  HeadwayMeter meter{};
  std::uint64_t done = 0, of = 0;  // passes of a sequence through a stage
};

struct Fitted {
  std::vector<std::pair<std::uint32_t, double>> kept;  // by cut
  double loss_through = 0, loss_plain = 0;             // nats a target
};

Result<std::vector<StageSpec>> with_cuts(const FitArguments& arguments, const std::vector<StageSpec>& plain) {
  ModelSpec model = plain.front().model;
  model.boundary = arguments.boundary;
  model.cuts = cuts_between(plain);
  model.boundary_table =
      arguments.table == kUsualTable ? usual_boundary_table(model, arguments.stages) : arguments.table;
  SHOAL_TRY(check_boundary(model));
  std::vector<StageSpec> narrow = plain;
  for (StageSpec& spec : narrow) spec.model = model;
  return narrow;
}

// Training samples of the text to fit to, and some of those that a run would validate with.
Result<Crossing> read_text(const FitArguments& arguments, const ModelSpec& model) {
  SHOAL_ASSIGN(const DType width, width_of(arguments.text, arguments.width));
  SHOAL_ASSIGN(const Samples samples, Samples::open({.paths = {arguments.text},
                                                     .width = width,
                                                     .vocabulary = model.vocabulary,
                                                     .sequences = 1,
                                                     .positions = model.positions}));
  Crossing crossing;
  SampleOrder order = samples.order(0);
  const std::uint64_t fitted = std::clamp<std::uint64_t>(arguments.tokens / model.positions, 1, samples.training());
  const std::uint64_t judged = std::min(samples.validation(), std::max(kJudgedMin, fitted / kJudgedShare));
  for (std::uint64_t i = 0; i < fitted; ++i) crossing.fitted.tokens.push_back(samples.tokens(order.at(i).sample));
  for (std::uint64_t i = 0; i < judged; ++i)
    crossing.judged.tokens.push_back(samples.tokens(SampleId{samples.training() + i}));
  crossing.plain.tokens = crossing.judged.tokens;
  for (SentText* sent : {&crossing.fitted, &crossing.judged, &crossing.plain}) {
    sent->activations.resize(sent->tokens.size());
    crossing.of += arguments.stages * sent->tokens.size();
  }
  return crossing;
}

// All of a text through a stage; the sum of the last stage's losses.
Result<double> pass(StageExecutor& stage, SentText& sent, Crossing& crossing) {
  double loss = 0;
  for (std::size_t i = 0; i < sent.tokens.size(); ++i) {
    if (stop_wanted()) return make_error(ErrorCode::kInterrupted, "the fit was stopped");
    HostCoder coder(std::move(sent.activations[i]));
    SHOAL_ASSIGN(const ForwardOutput out, stage.evaluate({.microbatch = {}, .tokens = sent.tokens[i]}, coder));
    sent.activations[i] = coder.output();
    loss += out.loss_sum;
    show_headway(crossing.meter, {.what = "fitting", .done = ++crossing.done, .total = crossing.of});
  }
  return loss;
}

// The plain model's values, and between them those of the halves beside it.
std::vector<float> joined(const StageSpec& narrow, std::span<const float> plain, const CutParameters& in_front,
                          const CutParameters& behind) {
  std::vector<float> values;
  values.reserve(parameter_count(narrow));
  for (const ParameterSpec& parameter : parameters_of(narrow)) {
    const bool is_half = is_of_boundary(parameter.name);
    const CutParameters& halves = in_front.contains(parameter.name) ? in_front : behind;
    const auto count = static_cast<std::size_t>(element_count(parameter.shape));
    const std::span<const float> from =
        is_half ? std::span<const float>(halves.at(parameter.name)) : plain.first(count);
    values.insert(values.end(), from.begin(), from.end());
    if (!is_half) plain = plain.subspan(count);
  }
  return values;
}

// One stage at a time is in memory.
Result<Fitted> fit_stages(const FitArguments& arguments, const PretrainedFolder& folder,
                          const std::vector<StageSpec>& plain, const std::vector<StageSpec>& narrow,
                          Crossing& crossing) {
  const ExecutorFactory factory = executor_factory(default_config(), arguments.compute);
  CutParameters in_front, behind;
  Fitted fitted;
  for (std::size_t s = 0; s < plain.size(); ++s) {
    SHOAL_ASSIGN(const auto stage, factory(plain[s]));
    SHOAL_TRY(folder.read_stage(plain[s], stage->arena().span(ArenaRole::kAnchor)));
    stage->arena().push(ArenaRole::kAnchor);
    SHOAL_TRY(pass(*stage, crossing.fitted, crossing));
    SHOAL_ASSIGN(fitted.loss_through, pass(*stage, crossing.judged, crossing));
    SHOAL_ASSIGN(fitted.loss_plain, pass(*stage, crossing.plain, crossing));
    const ModelSpec& model = narrow[s].model;
    if (const std::uint32_t cut = narrow[s].end_layer; !narrow[s].is_last()) {
      SHOAL_ASSIGN(behind, fit_cut(model, cut, crossing.fitted));
      SHOAL_TRY(cross_cut(model, cut, behind, crossing.fitted));
      SHOAL_ASSIGN(const double kept, cross_cut(model, cut, behind, crossing.judged));
      fitted.kept.emplace_back(cut, kept);
    }
    const std::vector<float> values = joined(narrow[s], stage->arena().span(ArenaRole::kAnchor), in_front, behind);
    SHOAL_TRY(publish_stage(arguments.out, narrow[s], values, published_type_named(arguments.type)));
    in_front = std::exchange(behind, {});
  }
  const double targets = static_cast<double>(crossing.judged.tokens.size() * plain.front().model.positions);
  fitted.loss_through /= targets;
  fitted.loss_plain /= targets;
  return fitted;
}

// Rows that cross, a stage as it computes and as it is written, and what the fit takes: of the host, whatever computes.
Status check_room(const FitArguments& arguments, const std::vector<StageSpec>& narrow, const Crossing& crossing) {
  const ModelSpec& model = narrow.front().model;
  const std::uint64_t fitted = crossing.fitted.tokens.size() * model.positions;
  const std::uint64_t rows = fitted + 2 * crossing.judged.tokens.size() * model.positions;
  for (const StageSpec& spec : narrow)
    SHOAL_TRY(check_memory("a stage, beside what crosses it of the text (--tokens),", {&spec, 1}, 2, {.device = "cpu"},
                           rows * model.dim * sizeof(float) + fit_bytes(model, fitted)));
  return arguments.compute.device == "cpu"
             ? Status()
             : Status(check_memory("a stage", {&narrow.front(), 1}, 1, arguments.compute));
}

Result<Fitted> fit(const FitArguments& arguments) {
  SHOAL_ASSIGN(const PretrainedFolder folder, PretrainedFolder::open(arguments.folder));
  for (const std::string& note : folder.notes()) log_info(note);
  if (has_boundary(folder.model()))
    return make_error(ErrorCode::kInput, arguments.folder +
                                             " holds a model with a narrow boundary already. HINT: [model] from takes "
                                             "it as it is");
  ModelSpec model = folder.model();
  model.positions =
      std::min(model.context_length(), arguments.positions > 0 ? arguments.positions : kPositionsOfFolder);
  SHOAL_ASSIGN(const std::vector<StageSpec> plain, split_model(model, arguments.stages));
  SHOAL_ASSIGN(const std::vector<StageSpec> narrow, with_cuts(arguments, plain));
  SHOAL_ASSIGN(Crossing crossing, read_text(arguments, model));
  SHOAL_TRY(check_room(arguments, narrow, crossing));
  NewFiles made;
  expect_published_model(made, arguments.out, narrow);
  SHOAL_TRY(begin_published_model(arguments.out));
  const std::string tokenizer = tokenizer_beside(arguments.folder, arguments.tokenizer);
  SHOAL_ASSIGN(const TextEnds ends,
               write_tokenizer(arguments.out, tokenizer, text_ends_of(arguments.folder, tokenizer), model, {}));
  auto fitted = fit_stages(arguments, folder, plain, narrow, crossing);
  end_status();
  if (!fitted.ok()) return fitted.error();
  SHOAL_TRY(finish_published_model(arguments.out, narrow, published_type_named(arguments.type),
                                   {.begin = ends.begin_id, .ends = ends.end_ids}));
  made.keep();
  return fitted;
}

void print(const FitArguments& arguments, const Fitted& fitted, bool json) {
  if (json) {
    Json cuts = Json::array();
    for (const auto& [layer, kept] : fitted.kept) cuts.add(Json({{"layer", layer}, {"kept", kept}}));
    const Json out = {{"schema", "shoal.fit/1"},        {"out", arguments.out},
                      {"boundary", arguments.boundary}, {"cuts", cuts},
                      {"loss", fitted.loss_through},    {"loss_without", fitted.loss_plain}};
    std::printf("%s\n", out.text().c_str());
    return;
  }
  for (const auto& [layer, kept] : fitted.kept)
    std::printf("in front of layer %u: %u values a token and what the token tells keep %.1f %% of what crosses\n",
                layer, arguments.boundary, 100 * kept);
  std::printf("loss %.4f nats a target of held-out text, %.4f without the cuts; untrained\n", fitted.loss_through,
              fitted.loss_plain);
  std::printf("%s has the model; train it on: [model] from = \"%s\"\n", printable(arguments.out).c_str(),
              printable(arguments.out).c_str());
}

int run(const FitArguments& arguments, bool json) {
  begin_batch_work();
  listen_for_stop();
  const auto fitted = fit(arguments);
  if (!fitted.ok()) return fail_or_stopped(fitted.error());
  print(arguments, *fitted, json);
  return kExitOk;
}

}  // namespace

void add_fit(Command& app, Program& program) {
  Command command = app.add_subcommand(
      "fit", "give a model that was trained without a narrow boundary one, fitted to a text, to be trained on");
  auto arguments = std::make_shared<FitArguments>();
  command.add_option("folder", arguments->folder, "a model as transformers saves it").required().type_name("FOLDER");
  command.add_option("dir", arguments->out, "write the model here").required().type_name("DIR");
  command.add_option("--text", arguments->text, "the token file that it will be trained on")
      .required()
      .type_name("FILE");
  command.add_option("--boundary", arguments->boundary, "values of a token that shall cross between stages")
      .required()
      .in(1u, 65536u);
  command.add_option("--stages", arguments->stages, "stages that it will be trained in").required().in(2u, 256u);
  command
      .add_option("--boundary-table", arguments->table,
                  "width of the token tables (default: as [model] boundary_table has it)")
      .in(0u, 65536u);
  command.add_option("--tokens", arguments->tokens, "of the text that are looked at (default: 65536)")
      .in(std::uint64_t{1}, std::uint64_t{1} << 32);
  command
      .add_option("--positions", arguments->positions,
                  "of a sequence (default: as many as the model has, 1024 at most)")
      .in(1u, 65536u);
  command
      .add_option("--tokenizer", arguments->tokenizer, "the tokenizer.json that goes along (default: FOLDER's, if any)")
      .type_name("FILE");
  command.add_option("--dtype", arguments->type, "of the weights: fp32 or bf16 (default: fp32)")
      .one_of({"fp32", "bf16"});
  command.add_option("--width", arguments->width, "of an id, where the file does not say it")
      .one_of({"auto", "u8", "u16", "u32"});
  add_compute_options(command, arguments->compute);
  run_when_named(command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global.json); });
}

}  // namespace shoal
