// shoal generate DIR --prompt TEXT: a trained model goes on with a text.
#include "runtime/generate/generate.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/executors.h"
#include "cli/outcome.h"
#include "cli/program.h"
#include "common/log.h"
#include "common/os/batch_work.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "runtime/generate/local_text.h"
#include "runtime/solo/saved_model.h"

namespace shoal {
namespace {

struct GenerateArguments {
  std::string source, tokenizer;
  GenerateOptions options;
  ComputeOptions compute;
};

// --tokenizer, or the one beside the model, or bytes where each id is one.
Result<TextCode> code_of(const std::string& named, const std::string& folder, std::uint32_t vocabulary) {
  std::string path = named;
  if (path.empty() && std::filesystem::exists(folder + "/tokenizer.json")) path = folder + "/tokenizer.json";
  if (path.empty()) {
    if (vocabulary == 256) return TextCode();
    return make_error(ErrorCode::kInput, folder + " has no tokenizer.json, and its " + std::to_string(vocabulary) +
                                             " ids are no bytes. HINT: --tokenizer FILE");
  }
  SHOAL_ASSIGN(Tokenizer tokenizer, Tokenizer::load(path));
  if (tokenizer.vocabulary() > vocabulary)
    return make_error(ErrorCode::kInput, path + " has " + std::to_string(tokenizer.vocabulary()) +
                                             " ids, and the model knows " + std::to_string(vocabulary) +
                                             ": it is another model's. HINT: --tokenizer FILE");
  return TextCode(std::make_shared<const Tokenizer>(std::move(tokenizer)));
}

int report(const Generated& made, Duration took, bool json) {
  const double seconds = seconds_of(took);
  const double rate = seconds > 0 ? static_cast<double>(made.ids.size()) / seconds : 0;
  if (json) {
    const nlohmann::ordered_json out = {
        {"schema", "shoal.generate/1"},  {"text", made.text},  {"ids", made.ids},     {"prompt_ids", made.prompt},
        {"stopped_by", made.stopped_by}, {"seconds", seconds}, {"tokens_per_s", rate}};
    std::printf("%s\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("\n");
    char line[96];
    std::snprintf(line, sizeof line, "%zu tokens in %.1f s (%.1f a second)", made.ids.size(), seconds, rate);
    log_info(line, "; stopped by: ", made.stopped_by);
  }
  return made.stopped_by == "interrupted" ? stop_exit_code() : kExitOk;
}

int run(const GenerateArguments& arguments, bool json) {
  begin_batch_work();
  auto chain = StageChain::load(arguments.source, executor_factory({}, arguments.compute));
  if (!chain.ok()) return fail(chain.error());
  LocalText model(*chain);
  const auto code = code_of(arguments.tokenizer, arguments.source, chain->stages().front()->spec().model.vocabulary);
  if (!code.ok()) return fail(code.error());
  listen_for_stop();
  if (!json) std::printf("%s", arguments.options.prompt.c_str());
  const TimePoint began = monotonic_now();
  const auto made = generate(arguments.options, *code, model, [json](const std::string& piece) {
    if (!json) {
      std::fputs(piece.c_str(), stdout);
      std::fflush(stdout);
    }
    return !stop_wanted();
  });
  if (!made.ok()) return fail(made.error());
  return report(*made, monotonic_now() - began, json);
}

}  // namespace

void add_generate(CLI::App& app, Program& program) {
  CLI::App* command = app.add_subcommand("generate", "a model that --save wrote goes on with a text");
  auto arguments = std::make_shared<GenerateArguments>();
  arguments->compute.forward_only = true;
  GenerateOptions& options = arguments->options;
  command->add_option("folder", arguments->source, "folder that --save wrote")->required()->type_name("DIR");
  command->add_option("--prompt", options.prompt, "the text that goes on")->type_name("TEXT");
  command->add_option("--tokens", options.tokens, "at most so many are added (default: 128)")
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--temperature", options.sampling.temperature,
                   "of the draw: below 1 likelier tokens are drawn more often; 0 = always the likeliest (default: 0.8)")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--top-k", options.sampling.top_k, "draw among the k likeliest only; 0 = all (default: 0)");
  command
      ->add_option("--top-p", options.sampling.top_p,
                   "draw among the likeliest only that together have this probability (default: 1)")
      ->check(CLI::Range(1e-6, 1.0));
  command->add_option("--seed", options.sampling.seed, "of the draw (default: 0)");
  command->add_flag("--go-on", options.go_on, "also behind an end of text");
  command
      ->add_option("--tokenizer", arguments->tokenizer,
                   "tokenizer.json of the model's ids (default: the folder's; bytes where there is none)")
      ->type_name("FILE");
  add_compute_options(*command, arguments->compute);
  run_when_named(*command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global.json); });
}

}  // namespace shoal
