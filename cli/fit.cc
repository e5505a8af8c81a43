// shoal fit FOLDER DIR: a model that was trained without a narrow boundary gets one, fitted to a text.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "cli/executors.h"
#include "cli/program.h"
#include "common/log.h"
#include "common/os/batch_work.h"
#include "common/os/new_files.h"
#include "common/os/posix_file.h"
#include "common/os/stop_signals.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "events/headway.h"
#include "runtime/data/samples.h"
#include "runtime/solo/saved_model.h"
#include "stages/boundary.h"
#include "stages/boundary_fit.h"
#include "stages/host_coder.h"
#include "stages/pretrained/pretrained_folder.h"
#include "stages/pretrained/published_model.h"
#include "stages/stage_file.h"
#include "text/text_ends.h"
#include "text/token_format.h"
#include "text/tokenizer.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kPositionsUsual = 1024, kUsualTable = UINT32_MAX;

struct FitArguments {
  std::string folder, out, text, width = "auto";
  std::uint32_t boundary = 0, table = kUsualTable, positions = 0;
  std::uint16_t stages = 0;
  std::uint64_t tokens = 65536;
  ComputeOptions compute{.forward_only = true};
};

// What crosses the stages of the text, at the place where the last one ended: through the cuts so far, and without.
struct Crossing {
  std::vector<HostTensor> tokens;           // (1, T + 1) each
  std::vector<HostTensor> through, plain;   // (1, T, d); undefined in front of the first stage
  double loss_through = 0, loss_plain = 0;  // sums of the last stage, nats
};

struct Fitted {
  std::vector<std::pair<std::uint32_t, double>> kept;  // by cut
  double loss_through = 0, loss_plain = 0;             // nats a target
};

Result<std::vector<StageSpec>> with_cuts(const FitArguments& arguments, const std::vector<StageSpec>& plain) {
  ModelSpec model = plain.front().model;
  model.boundary = arguments.boundary;
  for (const StageSpec& spec : plain)
    if (!spec.is_first()) model.cuts.push_back(spec.first_layer);
  model.boundary_table =
      arguments.table == kUsualTable ? usual_boundary_table(model, arguments.stages) : arguments.table;
  SHOAL_TRY(check_boundary(model));
  std::vector<StageSpec> narrow = plain;
  for (StageSpec& spec : narrow) spec.model = model;
  return narrow;
}

Result<std::vector<HostTensor>> read_text(const FitArguments& arguments, const ModelSpec& model) {
  SHOAL_ASSIGN(const DType width, width_of(arguments.text, arguments.width));
  SHOAL_ASSIGN(const Samples samples, Samples::open({.paths = {arguments.text},
                                                     .width = width,
                                                     .vocabulary = model.vocabulary,
                                                     .sequences = 1,
                                                     .positions = model.positions}));
  SampleOrder order = samples.order(0);
  const std::uint64_t wanted = std::max<std::uint64_t>(1, arguments.tokens / model.positions);
  std::vector<HostTensor> tokens;
  for (std::uint64_t i = 0; i < std::min(wanted, samples.training()); ++i)
    tokens.push_back(samples.tokens(order.at(i).sample));
  return tokens;
}

Status cross(StageExecutor& stage, const Crossing& crossing, std::vector<HostTensor>& sent, double& loss) {
  for (std::size_t i = 0; i < sent.size(); ++i) {
    HostCoder coder(std::move(sent[i]));
    SHOAL_ASSIGN(const ForwardOutput out, stage.evaluate({.microbatch = {}, .tokens = crossing.tokens[i]}, coder));
    sent[i] = coder.output();
    loss += out.loss_sum;
  }
  return {};
}

// The plain model's values, and between them those of the halves.
std::vector<float> joined(const StageSpec& narrow, std::span<const float> plain,
                          const std::map<std::string, std::vector<float>>& halves) {
  std::vector<float> values;
  values.reserve(parameter_count(narrow));
  for (const ParameterSpec& parameter : parameters_of(narrow)) {
    const bool is_half = is_of_boundary(parameter.name);
    const std::span<const float> from =
        is_half ? std::span(halves.at(parameter.name)) : plain.first(element_count(parameter.shape));
    values.insert(values.end(), from.begin(), from.end());
    if (!is_half) plain = plain.subspan(from.size());
  }
  return values;
}

Result<Fitted> fit_stages(const FitArguments& arguments, const PretrainedFolder& folder,
                          const std::vector<StageSpec>& plain, const std::vector<StageSpec>& narrow,
                          Crossing& crossing) {
  const ExecutorFactory factory = executor_factory(default_config(), arguments.compute);
  std::map<std::string, std::vector<float>> halves;
  Fitted fitted;
  HeadwayMeter meter;
  for (std::size_t s = 0; s < plain.size(); ++s) {
    if (stop_wanted()) return make_error(ErrorCode::kInterrupted, "the fit was stopped");
    show_headway(meter, {.what = "fitting stages", .done = s, .total = plain.size()});
    SHOAL_ASSIGN(const auto stage, factory(plain[s]));
    SHOAL_TRY(folder.read_stage(plain[s], stage->arena().span(ArenaRole::kAnchor)));
    stage->arena().push(ArenaRole::kAnchor);
    SHOAL_TRY(cross(*stage, crossing, crossing.through, crossing.loss_through));
    SHOAL_TRY(cross(*stage, crossing, crossing.plain, crossing.loss_plain));
    if (!plain[s].is_last()) {
      SHOAL_ASSIGN(FittedCut cut, fit_cut(narrow[s].model, narrow[s].end_layer, crossing.through, crossing.tokens));
      fitted.kept.emplace_back(narrow[s].end_layer, cut.kept);
      halves.merge(cut.parameters);
    }
    const std::vector<float> values = joined(narrow[s], stage->arena().span(ArenaRole::kAnchor), halves);
    SHOAL_TRY(publish_stage(arguments.out, narrow[s], values, PublishedType::kFp32));
  }
  const double targets = static_cast<double>(crossing.tokens.size() * plain.front().model.positions);
  fitted.loss_through = crossing.loss_through / targets;
  fitted.loss_plain = crossing.loss_plain / targets;
  return fitted;
}

// The tokenizer goes along as it lies there. ERRORS: kIo.
Status copy_tokenizer(const FitArguments& arguments) {
  for (const char* name : {kSavedTokenizerName, kTokenizerConfigName}) {
    const auto bytes = read_file((fs::path(arguments.folder) / name).string(), kTokenizerBytesMax);
    if (!bytes.ok() && bytes.code() == ErrorCode::kMissing) continue;
    if (!bytes.ok()) return bytes.error();
    SHOAL_TRY(replace_file((fs::path(arguments.out) / name).string(), {*bytes}));
  }
  return {};
}

Result<Fitted> fit(const FitArguments& arguments) {
  SHOAL_ASSIGN(const PretrainedFolder folder, PretrainedFolder::open(arguments.folder));
  for (const std::string& note : folder.notes()) log_info(note);
  if (has_boundary(folder.model()))
    return make_error(ErrorCode::kInput, arguments.folder +
                                             " holds a model with a narrow boundary already. HINT: [model] from takes "
                                             "it as it is");
  ModelSpec model = folder.model();
  model.positions = std::min(model.context_length(), arguments.positions > 0 ? arguments.positions : kPositionsUsual);
  SHOAL_ASSIGN(const std::vector<StageSpec> plain, split_model(model, arguments.stages));
  SHOAL_ASSIGN(const std::vector<StageSpec> narrow, with_cuts(arguments, plain));
  Crossing crossing;
  SHOAL_ASSIGN(crossing.tokens, read_text(arguments, model));
  crossing.through.resize(crossing.tokens.size());
  crossing.plain.resize(crossing.tokens.size());
  const std::uint64_t rows = 2 * crossing.tokens.size() * model.positions + 4ull * model.vocabulary;
  const std::string what = "a stage, and what crosses it of the text (--tokens)";
  for (const StageSpec& spec : plain)
    SHOAL_TRY(check_memory(what, {&spec, 1}, 2, arguments.compute, rows * model.dim * sizeof(float)));
  NewFiles made;
  made.expect(arguments.out);
  for (const char* name : {kSavedTokenizerName, kTokenizerConfigName, kGenerationConfigName, kIndexFileName,
                           kArchitectureFileName, kBoundaryClassName})
    made.expect((fs::path(arguments.out) / name).string());
  for (const StageSpec& spec : narrow) made.expect((fs::path(arguments.out) / published_file_name(spec)).string());
  SHOAL_TRY(begin_published_model(arguments.out));
  auto fitted = fit_stages(arguments, folder, plain, narrow, crossing);
  end_status();
  if (!fitted.ok()) return fitted.error();
  const TextEnds ends = text_ends_of(arguments.folder, (fs::path(arguments.folder) / kSavedTokenizerName).string());
  SHOAL_TRY(copy_tokenizer(arguments));
  SHOAL_TRY(finish_published_model(arguments.out, narrow, PublishedType::kFp32,
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
  std::printf("loss of the text %.4f nats a target, %.4f without the cuts\n", fitted.loss_through, fitted.loss_plain);
  std::printf("%s has the model; train it on: [model] from = \"%s\"\n", printable(arguments.out).c_str(),
              printable(arguments.out).c_str());
}

int run(const FitArguments& arguments, bool json) {
  begin_batch_work();
  listen_for_stop();
  const auto fitted = fit(arguments);
  if (fitted.ok()) {
    print(arguments, *fitted, json);
    return kExitOk;
  }
  return fitted.code() == ErrorCode::kInterrupted ? fail(fitted.error(), static_cast<ExitCode>(stop_exit_code()))
                                                  : fail(fitted.error());
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
  command.add_option("--width", arguments->width, "of an id, where the file does not say it")
      .one_of({"auto", "u8", "u16", "u32"});
  add_compute_options(command, arguments->compute);
  run_when_named(command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global.json); });
}

}  // namespace shoal
