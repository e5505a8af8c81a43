// shoal init: a run file for a text and a size of model.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "cli/document_inputs.h"
#include "cli/program.h"
#include "common/log.h"
#include "common/os/batch_work.h"
#include "common/os/new_files.h"
#include "common/os/posix_file.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"
#include "events/line_parts.h"
#include "runtime/config/derived_options.h"
#include "runtime/config/run_file_text.h"
#include "runtime/data/samples.h"
#include "runtime/plan/model_size.h"
#include "text/tokenizer.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

// The usual measure of what a model can learn from (Hoffmann et al., 2022, arXiv 2203.15556); and passes over one text
// behind which more of them teach ever less (Muennighoff et al., 2023, arXiv 2305.16264).
constexpr double kTokensAParameter = 20, kPassesOfUse = 4;

struct InitArguments {
  std::string text, tokenizer, out = "run.toml";
  double size = 0;
  std::uint64_t tokens = 0;  // 0: by the size
  std::uint16_t stages = 1, replicas = 1;
  bool force = false;
};

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// How a run file at `out` calls a file: relative to its own folder.
std::string path_from(const std::string& out, const std::string& file) {
  std::error_code failure;
  const fs::path near = fs::relative(file, folder_of(out), failure);
  return failure || near.empty() ? fs::absolute(file).string() : near.string();
}

Status check_free(const std::string& path, bool force) {
  std::error_code failure;
  if (force || !fs::exists(path, failure)) return {};
  return make_error(ErrorCode::kOutput, path + " exists already. HINT: --out FILE, or --force to replace it");
}

// Letters, digits, '.', '_' and '-' of the file's name, as a run may be called.
std::string name_for(const std::string& text) {
  std::string name = fs::path(text).stem().string().substr(0, 32);
  std::erase_if(
      name, [](char c) { return !(std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-'); });
  return name.empty() ? "run" : name;
}

// What the text is made of: a file of ids, and how many of them there are.
struct TextOfRun {
  std::string path;
  TokenWidth width = TokenWidth::kU8;
  std::uint32_t vocabulary = 256;
};

TokenWidth width_of(DType width) {
  return width == DType::kU8 ? TokenWidth::kU8 : width == DType::kU16 ? TokenWidth::kU16 : TokenWidth::kU32;
}

// A token file of the text beside the run file, as `shoal data prepare` makes it.
Result<TextOfRun> prepare_beside(const InitArguments& arguments, NewFiles& made) {
  const std::string out = (fs::path(folder_of(arguments.out)) / (name_for(arguments.text) + ".bin")).lexically_normal();
  if (const Status free = check_free(out, arguments.force); !free.ok())
    return make_error(ErrorCode::kOutput, out + " exists already. HINT: --text " + out + " to train on it, or --force");
  PrepareOptions options;
  options.inputs = {arguments.text};
  options.out = out;
  options.threads = 0;
  for (const std::string& file : {out, sidecar_path(out)}) made.expect(file);
  SHOAL_ASSIGN(const Prepared prepared, prepare_with(arguments.tokenizer, std::move(options)));
  return TextOfRun{out, width_of(prepared.sidecar.width), prepared.sidecar.vocabulary};
}

Result<TextOfRun> text_of(const InitArguments& arguments, NewFiles& made) {
  SHOAL_ASSIGN(const auto width, width_said_by(arguments.text));
  SHOAL_ASSIGN(const auto sidecar, load_sidecar(arguments.text));
  if (sidecar) return TextOfRun{arguments.text, width_of(sidecar->width), sidecar->vocabulary};
  const bool has_ids = width || arguments.text.ends_with(".bin");
  if (arguments.tokenizer.empty() && has_ids)
    return make_error(ErrorCode::kInput, arguments.text +
                                             " has ids, and nothing says of how many. HINT: --tokenizer FILE, the one "
                                             "that made them");
  if (arguments.tokenizer.empty()) {
    SHOAL_ASSIGN(const bool plain, DocumentReader::is_plain_text(arguments.text));
    if (plain) return TextOfRun{arguments.text};
    return make_error(ErrorCode::kInput, arguments.text + " is no plain text. HINT: --tokenizer FILE makes ids of it");
  }
  if (!has_ids) return prepare_beside(arguments, made);
  SHOAL_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(arguments.tokenizer));
  const DType needed = tokenizer.vocabulary() > ids_of_width(DType::kU16) ? DType::kU32 : DType::kU16;
  return TextOfRun{arguments.text, width_of(width.value_or(needed)), tokenizer.vocabulary()};
}

RunConfig config_of(const InitArguments& arguments, const TextOfRun& text, const ModelSpec& model) {
  RunConfig config = default_config();
  config.run.name = name_for(arguments.text);
  static_cast<ModelSpec&>(config.model) = model;
  config.data.paths = {path_from(arguments.out, text.path)};
  if (!arguments.tokenizer.empty()) config.data.tokenizer = path_from(arguments.out, arguments.tokenizer);
  config.data.width = text.width;
  config.pipeline.stages = arguments.stages;
  config.pipeline.replicas = arguments.replicas;
  config.end.tokens =
      arguments.tokens > 0
          ? arguments.tokens
          : static_cast<std::uint64_t>(kTokensAParameter * static_cast<double>(parameters_of_model(model)));
  return config;
}

struct Planned {
  RunConfig config;
  std::uint64_t parameters = 0, text_tokens = 0;
  double passes = 0;  // over the training samples
  std::optional<std::string> few_steps;
};

// All that could be wrong with the run is found here, before its file is there.
Result<Planned> plan_run(const InitArguments& arguments, NewFiles& made) {
  SHOAL_ASSIGN(const TextOfRun text, text_of(arguments, made));
  SHOAL_ASSIGN(const ModelSpec model, model_of_size(arguments.size, text.vocabulary, arguments.stages));
  Planned planned;
  planned.config = config_of(arguments, text, model);
  planned.parameters = parameters_of_model(model);
  RunConfig derived = planned.config;  // the file keeps its "auto"
  derive_options(derived);
  SHOAL_TRY(check_config(derived, arguments.out));
  planned.few_steps = few_steps_warning(derived);
  TextFiles files = derived.text_files();
  files.paths = {text.path};
  files.tokenizer = arguments.tokenizer;
  SHOAL_ASSIGN(const Samples samples, Samples::open(files));
  planned.text_tokens = samples.text().training.front().tokens();
  planned.passes =
      static_cast<double>(planned.config.end.tokens) / static_cast<double>(samples.training() * samples.targets());
  return planned;
}

std::string file_text(const Planned& planned, const std::string& out) {
  char passes[160];
  std::snprintf(passes, sizeof passes, "# It ends after %s tokens, %.3g passes over a text of %s.\n",
                short_number(planned.config.end.tokens).c_str(), planned.passes,
                short_number(planned.text_tokens).c_str());
  return "# A model of " + short_number(planned.parameters) + " parameters, written by `shoal init`.\n" + passes +
         "# Options that begin with # are at their defaults; docs/RUN.md says when to change each.\n"
         "#   shoal plan " +
         out +
         "      what it is expected to bring and to cost\n"
         "#   shoal solo " +
         out +
         "      train it on this machine alone\n"
         "#   shoal launch " +
         out + "    train it with others: it prints a ticket for `shoal join`\n\n" + run_file_text(planned.config);
}

void print_planned(const Planned& planned, const std::string& out, bool json) {
  const RunConfig& config = planned.config;
  if (json) {
    const Json object = {{"schema", "shoal.init/1"},
                         {"out", out},
                         {"parameters", planned.parameters},
                         {"layers", config.model.layers},
                         {"dim", config.model.dim},
                         {"heads", config.model.heads},
                         {"positions", config.model.positions},
                         {"vocabulary", config.model.vocabulary},
                         {"text", config.data.paths.front()},
                         {"text_tokens", planned.text_tokens},
                         {"end_tokens", config.end.tokens},
                         {"passes", planned.passes}};
    std::printf("%s\n", object.text().c_str());
    return;
  }
  const std::string shown = printable(out);
  std::printf(
      "%s: %s parameters in %u layers of width %u, sequences of %u tokens; %s tokens, %.3g passes over the text\n",
      shown.c_str(), short_number(planned.parameters).c_str(), config.model.layers, config.model.dim,
      config.model.positions, short_number(config.end.tokens).c_str(), planned.passes);
  std::printf("next: shoal plan %s; then shoal solo %s, or shoal launch %s\n", shown.c_str(), shown.c_str(),
              shown.c_str());
}

int run(const InitArguments& arguments, bool json) {
  begin_batch_work();
  if (const Status free = check_free(arguments.out, arguments.force); !free.ok()) return fail(free.error());
  if (const Status fits = check_output_file(arguments.out, {arguments.text, arguments.tokenizer}); !fits.ok())
    return fail(fits.error());
  NewFiles made;
  made.expect(arguments.out);
  const auto planned = plan_run(arguments, made);
  if (!planned.ok()) return fail_or_stopped(planned.error());
  const Status written =
      replace_file(arguments.out, {Bytes::copy_of(std::string_view(file_text(*planned, arguments.out)))});
  if (!written.ok()) return fail(written.error());
  made.keep();
  if (planned->passes > kPassesOfUse)
    log_warning("the text comes ", short_number(planned->passes), " times: more than ", short_number(kPassesOfUse),
                " times teach ever less. HINT: more text, a smaller --size, or --tokens");
  if (planned->few_steps) log_warning(*planned->few_steps);
  print_planned(*planned, arguments.out, json);
  return kExitOk;
}

}  // namespace

void add_init(Command& app, Program& program) {
  Command command = app.add_subcommand("init", "write a run file for a text and a size of model, every option in it");
  auto arguments = std::make_shared<InitArguments>();
  const std::map<std::string, double> units = {{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"B", 1e9}};
  const std::map<std::string, std::uint64_t> whole_units = {
      {"k", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}, {"B", 1'000'000'000}};
  command.add_option("--text", arguments->text, "what it learns: a text, whose bytes are the ids, or a token file")
      .required()
      .type_name("FILE");
  command.add_option("--size", arguments->size, "parameters of the model, about: 800k, 10M, 1.5B")
      .required()
      .with_units(units)
      .within(1e4, 1e12)
      .type_name("N");
  command
      .add_option("--tokenizer", arguments->tokenizer,
                  "the tokenizer.json that makes the ids: a token file of the text is put beside the run file")
      .type_name("FILE");
  command.add_option("--tokens", arguments->tokens, "that it trains on (default: 20 a parameter)")
      .with_units(whole_units)
      .type_name("N");
  command.add_option("--stages", arguments->stages, "parts that the model is cut into (default: 1)").in(1u, 256u);
  command.add_option("--replicas", arguments->replicas, "peers expected for each stage (default: 1)").in(1u, 256u);
  command.add_option("--out", arguments->out, "write it here (default: run.toml)").type_name("FILE");
  command.add_flag("--force", arguments->force, "replace what is there");
  run_when_named(command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global.json); });
}

}  // namespace shoal
