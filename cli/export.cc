// shoal export SAVED DIR: a saved model as Python's transformers reads it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/outcome.h"
#include "cli/program.h"
#include "common/log.h"
#include "common/os/posix_file.h"
#include "common/status_line.h"
#include "runtime/solo/saved_model.h"
#include "stages/pretrained/published_model.h"
#include "stages/stage_file.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kTokenizerFileMax = 64u << 20;
constexpr char kTokenizerName[] = "tokenizer.json";

struct ExportArguments {
  std::string saved, folder, format = "hf", type = std::string(kPublishedTypeNames[0]), tokenizer;
};

// What the run's text was made with, as far as transformers has to know.
struct TokenizerFile {
  Bytes text;
  std::optional<std::string> begin, end;  // special tokens
  TextEnds ids;
};

// The first of the names that is among the special tokens.
void find_special(const Json& added, std::span<const std::string_view> names, std::optional<std::string>& name,
                  std::optional<std::uint32_t>& id) {
  for (const std::string_view wanted : names) {
    const auto found = std::ranges::find_if(added, [&](const Json& token) {
      return token.is_object() && token.value("content", Json()) == wanted && token.value("special", Json()) == true &&
             token.value("id", Json()).is_number_unsigned();
    });
    if (found == added.end()) continue;
    name = wanted;
    id = (*found)["id"].get<std::uint32_t>();
    return;
  }
}

Result<TokenizerFile> read_tokenizer(const std::string& path) {
  static constexpr std::array<std::string_view, 3> kBegins = {"<s>", "<|begin_of_text|>", "<|endoftext|>"};
  static constexpr std::array<std::string_view, 4> kEnds = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<|im_end|>"};
  TokenizerFile tokenizer;
  SHOAL_ASSIGN(tokenizer.text, read_file(path, kTokenizerFileMax));
  const std::string_view text(reinterpret_cast<const char*>(tokenizer.text.data()), tokenizer.text.size());
  const Json file = Json::parse(text, nullptr, false);
  if (!file.is_object() || !file.contains("model"))
    return make_error(ErrorCode::kMalformed, path + " is no tokenizer.json. HINT: give the one that made the ids");
  const Json added = file.value("added_tokens", Json());
  if (!added.is_array()) return tokenizer;
  find_special(added, kBegins, tokenizer.begin, tokenizer.ids.begin);
  find_special(added, kEnds, tokenizer.end, tokenizer.ids.end);
  return tokenizer;
}

// --tokenizer, or the one that was saved beside the model.
Result<std::optional<TokenizerFile>> tokenizer_of(const ExportArguments& arguments) {
  std::string path = arguments.tokenizer;
  std::error_code failure;
  if (const fs::path beside = fs::path(arguments.saved) / kTokenizerName; path.empty() && fs::exists(beside, failure))
    path = beside.string();
  if (path.empty()) return std::optional<TokenizerFile>();
  SHOAL_ASSIGN(TokenizerFile tokenizer, read_tokenizer(path));
  return std::optional(std::move(tokenizer));
}

Status write_tokenizer(const std::string& folder, const TokenizerFile& tokenizer, const ModelSpec& model) {
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {"model_max_length", model.context_length()},
                 {"clean_up_tokenization_spaces", false}};
  if (tokenizer.begin) config["bos_token"] = *tokenizer.begin;
  if (tokenizer.end) config["eos_token"] = *tokenizer.end;
  SHOAL_TRY(replace_file((fs::path(folder) / kTokenizerName).string(), {tokenizer.text}));
  return replace_file((fs::path(folder) / "tokenizer_config.json").string(),
                      {Bytes::copy_of(std::string_view(config.dump(2) + "\n"))});
}

struct Exported {
  std::vector<StageSpec> specs;
  std::uint64_t parameters = 0;
};

Result<Exported> write_stages(const ExportArguments& arguments, PublishedType type) {
  Exported exported;
  HeadwayMeter meter;
  const Status written = read_stages(arguments.saved, [&](const LoadedStage& stage) -> Status {
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

Result<Exported> export_saved(const ExportArguments& arguments) {
  const auto type = static_cast<PublishedType>(std::ranges::find(kPublishedTypeNames, arguments.type) -
                                               std::begin(kPublishedTypeNames));
  std::error_code failure;
  if (!fs::exists(fs::path(arguments.saved) / kSavedConfigName, failure))
    return make_error(ErrorCode::kMissing,
                      arguments.saved +
                          " holds no model that --save wrote. HINT: of a peer's checkpoints `shoal checkpoint export` "
                          "makes one");
  SHOAL_TRY(check_saved_model(arguments.saved));
  SHOAL_ASSIGN(const std::optional<TokenizerFile> tokenizer, tokenizer_of(arguments));
  SHOAL_TRY(begin_published_model(arguments.folder));
  SHOAL_ASSIGN(Exported exported, write_stages(arguments, type));
  const ModelSpec& model = exported.specs.front().model;
  if (tokenizer) SHOAL_TRY(write_tokenizer(arguments.folder, *tokenizer, model));
  SHOAL_TRY(finish_published_model(arguments.folder, exported.specs, type, tokenizer ? tokenizer->ids : TextEnds{}));
  return exported;
}

int run(const ExportArguments& arguments, bool json) {
  const auto exported = export_saved(arguments);
  if (!exported.ok()) return fail(exported.error());
  const Json out = {{"schema", "shoal.export/1"},
                    {"out", arguments.folder},
                    {"dtype", arguments.type},
                    {"stages", exported->specs.size()},
                    {"parameters", exported->parameters}};
  if (json) {
    std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s has the model, %llu parameters in %s; from_pretrained of transformers reads it\n",
                printable(arguments.folder).c_str(), static_cast<unsigned long long>(exported->parameters),
                arguments.type.c_str());
  }
  return kExitOk;
}

}  // namespace

void add_export(CLI::App& app, Program& program) {
  CLI::App* command = app.add_subcommand("export", "a model that --save wrote, as Python's transformers reads it");
  auto arguments = std::make_shared<ExportArguments>();
  command->add_option("saved", arguments->saved, "the folder of --save")->required()->type_name("SAVED");
  command->add_option("dir", arguments->folder, "write the model here")->required()->type_name("DIR");
  command->add_option("--format", arguments->format, "of the folder (default: hf)")->check(CLI::IsMember({"hf"}));
  command->add_option("--dtype", arguments->type, "of the weights: fp32 or bf16 (default: fp32)")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  command
      ->add_option("--tokenizer", arguments->tokenizer,
                   "the tokenizer.json that made the ids (default: the one beside the model, if any)")
      ->type_name("FILE");
  run_when_named(*command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global.json); });
}

}  // namespace shoal
