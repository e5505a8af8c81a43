// shoal export SAVED DIR: a saved model as Python's transformers reads it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "cli/program.h"
#include "cli/published_folder.h"
#include "common/log.h"
#include "common/os/new_files.h"
#include "common/os/posix_file.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "events/headway.h"
#include "runtime/solo/base_model.h"
#include "runtime/solo/saved_model.h"
#include "stages/adapters.h"
#include "stages/boundary.h"
#include "stages/pretrained/published_adapters.h"
#include "stages/pretrained/published_model.h"
#include "stages/stage_file.h"
#include "text/text_ends.h"
#include "text/tokenizer.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

struct ExportArguments {
  std::string saved, folder, format = "hf", base, type = std::string(kPublishedTypeNames[0]), tokenizer;
  bool drop_boundary = false;
};

struct Exported {
  std::vector<StageSpec> specs;
  std::uint64_t parameters = 0;
};

// What is published of a stage: adapters are put into their base first.
Result<LoadedStage> whole_stage(LoadedStage stage, const BaseModel& base) {
  LoadedStage whole{.spec = base_of(stage.spec), .parameters = {}};
  whole.parameters.resize(parameter_count(whole.spec));
  SHOAL_TRY(base.read_stage(stage.spec, whole.parameters));
  merge_adapters(stage.spec, stage.parameters, whole.parameters);
  return whole;
}

// The same layers without what stood between stages.
LoadedStage without_halves(const LoadedStage& stage) {
  LoadedStage plain{.spec = stage.spec, .parameters = {}};
  plain.spec.model = without_boundary(stage.spec.model);
  plain.parameters.reserve(parameter_count(plain.spec));
  for (const ParameterSpec& parameter : parameters_of(stage.spec)) {
    if (is_of_boundary(parameter.name)) continue;
    const auto first = stage.parameters.begin() + static_cast<std::ptrdiff_t>(parameter.offset);
    plain.parameters.insert(plain.parameters.end(), first, first + element_count(parameter.shape));
  }
  return plain;
}

Result<Exported> write_stages(const ExportArguments& arguments, const std::optional<BaseModel>& base,
                              PublishedType type, NewFiles& made) {
  Exported exported;
  HeadwayMeter meter;
  const Status written = read_stages(arguments.saved, [&](LoadedStage stage) -> Status {
    if (base) {
      SHOAL_ASSIGN(stage, whole_stage(std::move(stage), *base));
    }
    if (arguments.drop_boundary) stage = without_halves(stage);
    made.expect((fs::path(arguments.folder) / published_file_name(stage.spec)).string());
    SHOAL_TRY(publish_stage(arguments.folder, stage.spec, stage.parameters, type));
    exported.specs.push_back(stage.spec);
    exported.parameters += stage.parameters.size();
    show_headway(meter, {.what = "exporting stages", .done = exported.specs.size(), .total = stage.spec.stages});
    return {};
  });
  end_status();
  if (!written.ok()) return written.error();
  return exported;
}

// A folder of transformers, in which adapters are merged.
Result<Exported> export_whole(const ExportArguments& arguments, const RunConfig& config, NewFiles& made) {
  SHOAL_ASSIGN(const auto base, BaseModel::beside(arguments.saved, config.model, arguments.base));
  SHOAL_TRY(begin_published_model(arguments.folder));
  const PublishedType type = published_type_named(arguments.type);
  const std::string tokenizer = tokenizer_beside(arguments.saved, arguments.tokenizer);
  SHOAL_ASSIGN(const TextEnds ends,
               write_tokenizer(arguments.folder, tokenizer, text_ends_of(arguments.saved, tokenizer), config.model,
                               config.data.tokenizer_digest));
  SHOAL_ASSIGN(Exported exported, write_stages(arguments, base, type, made));
  SHOAL_TRY(
      finish_published_model(arguments.folder, exported.specs, type, {.begin = ends.begin_id, .ends = ends.end_ids}));
  return exported;
}

// A folder of peft.
Result<Exported> export_adapters(const ExportArguments& arguments, const RunConfig& config) {
  if (!has_adapters(config.model))
    return make_error(ErrorCode::kInput, arguments.saved + " holds a whole model, and no adapters. HINT: --format hf");
  SHOAL_ASSIGN(const std::vector<LoadedStage> stages, load_model(arguments.saved));
  SHOAL_TRY(begin_published_model(arguments.folder));
  SHOAL_TRY(publish_adapters(arguments.folder, stages, arguments.base));
  Exported exported;
  for (const LoadedStage& stage : stages) {
    exported.specs.push_back(stage.spec);
    exported.parameters += stage.parameters.size();
  }
  return exported;
}

Result<Exported> export_saved(const ExportArguments& arguments) {
  std::error_code failure;
  if (!fs::exists(fs::path(arguments.saved) / kSavedConfigName, failure))
    return make_error(ErrorCode::kMissing,
                      arguments.saved +
                          " holds no model that --save wrote. HINT: of a peer's checkpoints `shoal checkpoint export` "
                          "makes one");
  SHOAL_TRY(check_saved_model(arguments.saved));
  SHOAL_ASSIGN(const RunConfig config, load_saved_config(arguments.saved));
  if (arguments.drop_boundary && !has_boundary(config.model))
    return make_error(ErrorCode::kInput,
                      arguments.saved + " holds a model without a narrow boundary. HINT: leave --drop-boundary out");
  NewFiles made;
  expect_published_model(made, arguments.folder, {});
  for (const char* name : {kAdapterWeightsName, kAdapterConfigName})
    made.expect((fs::path(arguments.folder) / name).string());
  auto exported =
      arguments.format == "peft" ? export_adapters(arguments, config) : export_whole(arguments, config, made);
  if (exported.ok()) made.keep();
  return exported;
}

// How the folder is opened, or what is to be known of it before.
std::string remark(const ExportArguments& arguments, const Exported& exported) {
  if (arguments.format == "peft") return "from_pretrained of peft's PeftModel reads it";
  if (arguments.drop_boundary)
    return "from_pretrained of transformers reads it; its layers were trained with a boundary between them that is "
           "gone "
           "now: train it on ([model] from) before it is of use";
  const bool has_own_class = has_boundary(exported.specs.front().model);
  return has_own_class ? "from_pretrained of transformers reads it with trust_remote_code=True, by modeling_boundary.py"
                       : "from_pretrained of transformers reads it";
}

int run(const ExportArguments& arguments, bool json) {
  const auto exported = export_saved(arguments);
  if (!exported.ok()) return fail(exported.error());
  const Json out = {{"schema", "shoal.export/1"},       {"out", arguments.folder},
                    {"format", arguments.format},       {"dtype", arguments.type},
                    {"stages", exported->specs.size()}, {"parameters", exported->parameters}};
  if (json) {
    std::printf("%s\n", out.text().c_str());
  } else {
    std::printf("%s has the %s, %llu parameters in %s; %s\n", printable(arguments.folder).c_str(),
                arguments.format == "peft" ? "adapters" : "model",
                static_cast<unsigned long long>(exported->parameters), arguments.type.c_str(),
                remark(arguments, *exported).c_str());
  }
  return kExitOk;
}

}  // namespace

void add_export(Command& app, Program& program) {
  Command command = app.add_subcommand("export", "a model that --save wrote, as Python's transformers reads it");
  auto arguments = std::make_shared<ExportArguments>();
  command.add_option("saved", arguments->saved, "the folder of --save").required().type_name("SAVED");
  command.add_option("dir", arguments->folder, "write the model here").required().type_name("DIR");
  command
      .add_option("--format", arguments->format,
                  "hf: the model, for transformers; peft: adapters alone, for peft (default: hf)")
      .one_of({"hf", "peft"});
  add_saved_options(command, arguments->tokenizer, arguments->base, "the one beside the model, if any");
  command.add_option("--dtype", arguments->type, "of the weights: fp32 or bf16 (default: fp32)")
      .one_of({"fp32", "bf16"});
  command.add_flag("--drop-boundary", arguments->drop_boundary,
                   "of a model with a narrow boundary: the plain model without it, which must be trained on");
  run_when_named(command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global.json); });
}

}  // namespace shoal
