// shoal eval DIR --text FILE: the validation loss of a saved model.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/executors.h"
#include "cli/outcome.h"
#include "cli/program.h"
#include "common/os/batch_work.h"
#include "common/os/stop_signals.h"
#include "common/status_line.h"
#include "runtime/solo/saved_model.h"
#include "runtime/solo/stage_chain.h"

namespace shoal {
namespace {

struct EvalArguments {
  std::string folder, text;
  ComputeOptions compute;
};

int run(const EvalArguments& arguments, bool json) {
  begin_batch_work();
  const auto config = load_saved_config(arguments.folder);
  if (!config.ok()) return fail(config.error());
  auto file = TokenFile::open(arguments.text, config->token_dtype(), config->model.vocabulary);
  if (!file.ok()) return fail(file.error());
  const auto samples = Samples::cut(std::move(*file), config->data.sequences, config->model.positions);
  if (!samples.ok()) return fail(samples.error());
  auto chain = StageChain::load(arguments.folder, executor_factory({}, arguments.compute));
  if (!chain.ok()) return fail(chain.error());
  listen_for_stop();
  HeadwayMeter meter;
  const auto loss =
      chain->validate(*samples, config->data.validation_samples, [&meter](std::uint64_t done, std::uint64_t of) {
        show_headway(meter, {.what = "validating", .done = done, .total = of});
        return !stop_wanted();
      });
  end_status();
  if (!loss.ok())
    return loss.code() == ErrorCode::kInterrupted ? fail(loss.error(), static_cast<ExitCode>(stop_exit_code()))
                                                  : fail(loss.error());
  if (json) {
    const nlohmann::ordered_json out = {
        {"schema", "shoal.eval/1"}, {"val_loss", loss->mean()}, {"targets", loss->targets}};
    std::printf("%s\n", out.dump().c_str());
  } else {
    std::printf("validation loss %.4f nats a target, over %llu targets\n", loss->mean(),
                static_cast<unsigned long long>(loss->targets));
  }
  return kExitOk;
}

}  // namespace

void add_eval(CLI::App& app, Program& program) {
  CLI::App* command =
      app.add_subcommand("eval", "validation loss of a model that --save wrote, on the last tenth of a text");
  auto arguments = std::make_shared<EvalArguments>();
  command->add_option("folder", arguments->folder, "folder that --save wrote")->required()->type_name("DIR");
  command->add_option("--text", arguments->text, "the token file, as in [data] path")->required()->type_name("FILE");
  add_compute_options(*command, arguments->compute);
  run_when_named(*command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global.json); });
}

}  // namespace shoal
