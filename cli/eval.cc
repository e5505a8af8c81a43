// shoal eval DIR --text FILE: the validation loss of a saved model.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numbers>

#include "cli/executors.h"
#include "cli/program.h"
#include "common/os/batch_work.h"
#include "common/os/stop_signals.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "events/headway.h"
#include "runtime/config/config.h"
#include "runtime/solo/saved_model.h"
#include "runtime/solo/stage_chain.h"
#include "text/tokenizer.h"

namespace shoal {
namespace {

struct EvalArguments {
  std::string folder, text, tokenizer, base;
  bool whole = false;
  ComputeOptions compute;
};

// The text, held to the tokenizer that the model was trained with, and to no file: a model may be asked about any. Each
// sequence is a sample of its own, so that the loss is of model and text alone, whatever batch the model was trained
// in.
TextFiles text_of(const EvalArguments& arguments, const RunConfig& config) {
  TextFiles files = config.text_files();
  files.paths = {arguments.text};
  files.validation = arguments.whole ? arguments.text : "";
  files.tokenizer = arguments.tokenizer;
  files.sequences = 1;
  files.weights.clear();
  files.digests.clear();
  // Without the digest nobody knows whether the file belongs to this model.
  if (const std::string saved = arguments.folder + "/" + kSavedTokenizerName;
      files.tokenizer.empty() && files.tokenizer_digest && std::filesystem::exists(saved))
    files.tokenizer = saved;
  return files;
}

// How many bytes of text the targets of the validation samples stand for; nothing: they are ids of a tokenizer that
// nobody named.
Result<std::optional<std::uint64_t>> bytes_of_targets(const Samples& samples, const TextFiles& files) {
  const std::uint64_t count = samples.validation();
  if (files.width == DType::kU8 && files.tokenizer.empty()) return std::optional(count * samples.targets());
  if (files.tokenizer.empty()) return std::optional<std::uint64_t>();
  SHOAL_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(files.tokenizer));
  std::vector<std::uint64_t> bytes(tokenizer.vocabulary());
  for (std::uint32_t id = 0; id < bytes.size(); ++id)
    if (!tokenizer.is_special(id)) bytes[id] = tokenizer.bytes_of(id).size();
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const HostTensor tokens = samples.tokens(SampleId{samples.training() + i});
    for (std::size_t at = 1; at <= files.positions; ++at) {
      const std::uint32_t id = id_at(tokens.bytes, tokens.dtype, at);
      if (id < bytes.size()) sum += bytes[id];
    }
  }
  return std::optional(sum);
}

void print_loss(const MeanLoss& loss, std::uint64_t tokens, std::optional<std::uint64_t> bytes, bool json) {
  const double perplexity = std::exp(loss.mean());
  std::optional<double> bits;  // a byte
  if (bytes.value_or(0) > 0) bits = loss.loss_sum / std::numbers::ln2 / static_cast<double>(*bytes);
  if (json) {
    Json out = {{"schema", "shoal.eval/1"},
                {"val_loss", loss.mean()},
                {"targets", loss.targets},
                {"not_judged", tokens - loss.targets},
                {"perplexity", perplexity}};
    if (bits) {
      out.set("bits_per_byte", *bits);
      out.set("bytes", *bytes);
    }
    std::printf("%s\n", out.line().c_str());
    return;
  }
  std::printf("validation loss %.4f nats a target, over %llu targets; perplexity %.2f", loss.mean(),
              static_cast<unsigned long long>(loss.targets), perplexity);
  if (bits) std::printf(", %.4f bits a byte over %llu bytes", *bits, static_cast<unsigned long long>(*bytes));
  std::printf("\n%llu of the text's %llu tokens were judged, %llu were not\n",
              static_cast<unsigned long long>(loss.targets), static_cast<unsigned long long>(tokens),
              static_cast<unsigned long long>(tokens - loss.targets));
}

int run(const EvalArguments& arguments, bool json) {
  begin_batch_work();
  const auto config = load_saved_config(arguments.folder);
  if (!config.ok()) return fail(config.error());
  const TextFiles files = text_of(arguments, *config);
  const auto samples = Samples::open(files);
  if (!samples.ok()) return fail(samples.error());
  const auto bytes = bytes_of_targets(*samples, files);
  if (!bytes.ok()) return fail(bytes.error());
  auto chain =
      StageChain::load(arguments.folder, executor_factory(default_config(), arguments.compute), arguments.base);
  if (!chain.ok()) return fail(chain.error());
  listen_for_stop();
  HeadwayMeter meter;
  const auto loss = chain->validate(*samples, 0, [&meter](std::uint64_t done, std::uint64_t of) {
    show_headway(meter, {.what = "validating", .done = done, .total = of});
    return !stop_wanted();
  });
  end_status();
  if (!loss.ok()) return fail_or_stopped(loss.error());
  print_loss(*loss, samples->text().training.front().tokens(), *bytes, json);
  return kExitOk;
}

}  // namespace

void add_eval(Command& app, Program& program) {
  Command command = app.add_subcommand(
      "eval", "validation loss of a model that --save wrote, on the last tenth of a text or on all of it");
  auto arguments = std::make_shared<EvalArguments>();
  command.add_option("folder", arguments->folder, "folder that --save wrote").required().type_name("DIR");
  command.add_option("--text", arguments->text, "the token file, as in [data] path").required().type_name("FILE");
  add_saved_options(command, arguments->tokenizer, arguments->base,
                    "DIR/tokenizer.json; bits a byte need it where ids are no bytes");
  command.add_flag("--whole", arguments->whole,
                   "all of the text instead of its last tenth: a file of [data] validation");
  add_compute_options(command, arguments->compute);
  run_when_named(command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global.json); });
}

}  // namespace shoal
