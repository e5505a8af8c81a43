// shoal demo: a swarm of real processes on this machine, with faults, and its figures.
#include "demo/demo.h"

#include <cstdio>
#include <filesystem>

#include "cli/program.h"
#include "common/os/executable.h"
#include "common/os/offspring.h"
#include "common/os/stop_signals.h"
#include "common/program/outcome.h"
#include "page/page_port.h"
#include "runtime/config/config.h"

namespace shoal {
namespace {

struct DemoArguments {
  DemoOptions options;
  std::string rule = "diloco", chaos = "default";
  std::optional<PagePort> page;
};

// Where scripts/setup puts the text, seen from build/PRESET/bin/shoal.
std::string text_of_setup(const std::string& program) {
  const std::filesystem::path path(program);
  return (path.parent_path() / "../../deps/text/jargon.txt").lexically_normal().string();
}

int run(DemoArguments arguments, const GlobalOptions& global) {
  DemoOptions& options = arguments.options;
  options.rule = *rule_named(arguments.rule);
  options.chaos = arguments.chaos != "none";
  if (arguments.page) options.page = option_of(*arguments.page);
  const auto program = own_program();
  if (!program.ok()) return fail(program.error());
  options.program = *program;
  options.dht_program = (std::filesystem::path(*program).parent_path() / "shoal-dht").string();
  if (options.text.empty()) options.text = text_of_setup(*program);
  options.say = [quiet = global.quiet](const std::string& line) {
    if (!quiet) std::fprintf(stderr, "%s\n", line.c_str());
  };
  options.stop = [] { return stop_wanted(); };
  listen_for_stop();
  const auto result = run_demo(options);
  if (!result.ok()) {
    if (result.code() == ErrorCode::kInterrupted) return stop_exit_code();
    return result.code() == ErrorCode::kInput ? fail(result.error(), kExitUsage) : fail(result.error());
  }
  std::fputs(demo_table(*result).c_str(), global.json ? stderr : stdout);
  if (global.json) std::fputs(demo_json(*result).c_str(), stdout);
  const std::vector<std::string> failures = demo_failures(*result);
  for (const std::string& failure : failures) std::fprintf(stderr, "shoal: demo failed: %s\n", failure.c_str());
  const std::vector<std::string> doubts = demo_doubts(*result);
  for (const std::string& doubt : doubts) std::fprintf(stderr, "shoal: demo inconclusive: %s\n", doubt.c_str());
  if (!options.keep.empty())
    std::fprintf(stderr, "kept: %s (shoal audit %s/events)\n", options.keep.c_str(), options.keep.c_str());
  if (!failures.empty()) return kExitFailed;
  return doubts.empty() ? kExitOk : kExitIncomplete;
}

}  // namespace

void add_demo(Command& app, Program& program) {
  Command command = app.add_subcommand("demo",
                                       "train over a swarm of processes on this machine, with faults; exits 1 when a "
                                       "promise is broken, 2 when the machine was too "
                                       "busy to tell");
  auto arguments = std::make_shared<DemoArguments>();
  DemoOptions& options = arguments->options;
  command.add_option("--rule", arguments->rule, "how replicas agree")
      .one_of({std::begin(kRuleNames), std::end(kRuleNames)})
      .show_default();
  command.add_option("--seed", options.seed, "of the model, the order of the text and the choice of victims")
      .show_default();
  command.add_option("--chaos", arguments->chaos, "kill, freeze and rejoin, or not")
      .one_of({"default", "none"})
      .show_default();
  command.add_option("--model", options.family, "family of the model; llama has half as many heads of keys and values")
      .one_of({family_names().begin(), family_names().end()})
      .show_default();
  command.add_option("--stages", options.stages, "parts of the model").in(1, 16).show_default();
  command.add_option("--replicas", options.replicas, "peers of every stage").in(1, 16).show_default();
  command.add_option("--codec", options.codec, "of activations; gradients are sent in int8")
      .one_of({std::begin(kCodecNames), std::end(kCodecNames)})
      .show_default();
  command.add_option("--dtype", options.dtype, "of matrix products and attention")
      .one_of({std::begin(kComputeNames), std::end(kComputeNames)})
      .show_default();
  command.add_option("--seconds", options.seconds, "of training in the swarm").in(5, 86400).show_default();
  command.add_option("--text", options.text, "bytes to train on (default: the text that scripts/setup fetched)")
      .type_name("FILE");
  add_page_option(command, arguments->page, "show the swarm in a browser, while it trains,");
  command.add_option("--keep", options.keep, "keep run file, logs, events and model here").type_name("DIR");
  run_when_named(command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global); });
}

}  // namespace shoal
