// shoal generate DIR|TICKET --prompt TEXT: a trained model, or the one that a swarm trains, goes on with a text.
#include "runtime/generate/generate.h"

#include <cstdio>
#include <filesystem>

#include "cli/executors.h"
#include "cli/program.h"
#include "cli/text_codes.h"
#include "common/log.h"
#include "common/os/batch_work.h"
#include "common/os/own_addresses.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"
#include "runtime/config/config.h"
#include "runtime/config/ticket.h"
#include "runtime/generate/local_text.h"
#include "runtime/reader/reader.h"
#include "runtime/solo/saved_model.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {
namespace {

struct GenerateArguments {
  std::string source, tokenizer, base;
  GenerateOptions options;
  ComputeOptions compute;
  bool own_key = false, no_bos = false;
  double patience_s = 60;
};

int report(const Generated& made, Duration took, bool json) {
  const double seconds = seconds_of(took);
  const double rate = seconds > 0 ? static_cast<double>(made.ids.size()) / seconds : 0;
  if (json) {
    const Json out = {
        {"schema", "shoal.generate/1"},  {"text", made.text},  {"ids", made.ids},     {"prompt_ids", made.prompt},
        {"stopped_by", made.stopped_by}, {"seconds", seconds}, {"tokens_per_s", rate}};
    std::printf("%s\n", out.line().c_str());
  } else {
    std::printf("\n");
    char line[96];
    std::snprintf(line, sizeof line, "%zu tokens in %.1f s (%.1f a second)", made.ids.size(), seconds, rate);
    log_info(line, "; stopped by: ", made.stopped_by);
  }
  return stop_wanted() && made.stopped_by == "interrupted" ? stop_exit_code() : kExitOk;
}

// Writes the text as it comes.
Result<Generated> write_text(const GenerateArguments& arguments, const TextCode& code, TextModel& model, bool json) {
  GenerateOptions options = arguments.options;
  options.begin = !arguments.no_bos;
  if (const std::string begin = begin_said(code.begin()); options.begin && !begin.empty())
    log_info("the text", begin, "; --no-bos leaves it out");
  if (!json) std::printf("%s", arguments.options.prompt.c_str());
  return generate(options, code, model, [json](const std::string& piece) {
    if (!json) {
      std::fputs(piece.c_str(), stdout);
      if (std::fflush(stdout) != 0) return false;  // nobody reads it
    }
    return !stop_wanted();
  });
}

int run_here(const GenerateArguments& arguments, bool json) {
  std::error_code failure;
  if (!std::filesystem::is_directory(arguments.source, failure))
    return fail(make_error(ErrorCode::kMissing, "\"" + arguments.source +
                                                    "\" is neither a folder nor a ticket. HINT: give the folder of "
                                                    "--save or of transformers, or what `shoal launch` printed"));
  begin_batch_work();
  auto chain =
      StageChain::open(arguments.source, executor_factory(default_config(), arguments.compute), arguments.base);
  if (!chain.ok()) return fail(chain.error());
  LocalText model(*chain);
  TextCodeNeed need{.of = arguments.source, .named = arguments.tokenizer, .folder = arguments.source};
  need.vocabulary = chain->stages().front()->spec().model.vocabulary;
  if (const auto config = load_saved_config(arguments.source); config.ok())
    need.tokenizer = config->data.tokenizer_digest;
  const auto code = code_of(need);
  if (!code.ok()) return fail(code.error());
  listen_for_stop();
  const TimePoint began = monotonic_now();
  const auto made = write_text(arguments, *code, model, json);
  if (!made.ok()) return fail(made.error());
  return report(*made, monotonic_now() - began, json);
}

// The process of a reader.
class SwarmReading {
 public:
  SwarmReading(const GenerateArguments& arguments, const GlobalOptions& global)
      : arguments_(arguments), global_(global) {}

  int run() {
    if (const Status opened = open(); !opened.ok()) return fail(opened.error());
    if (!wait([this] { return reader_->ready() || reader_->failure(); })) return stop_exit_code();
    if (!reader_->ready()) return fail(*reader_->failure());
    const auto code = code_of({.of = "the run",
                               .named = arguments_.tokenizer,
                               .vocabulary = reader_->config().model.vocabulary,
                               .tokenizer = reader_->config().data.tokenizer_digest});
    if (!code.ok()) return fail(code.error());
    WaitingText text(*reader_, [this](const auto& until) { return wait(until); });
    const TimePoint began = monotonic_now();
    const auto made = write_text(arguments_, *code, text, global_.json);
    if (!made.ok()) return made.code() == ErrorCode::kInterrupted ? stop_exit_code() : fail(made.error());
    if (const std::uint64_t replays = reader_->text().replays())
      log_info("a stage began anew at another peer ", replays, " times");
    if (const std::uint64_t moved = reader_->text().anchors_moved())
      log_info("stages answered at a newer version than before ", moved, " times: the model learns meanwhile");
    return report(*made, monotonic_now() - began, global_.json);
  }

 private:
  Status open() {
    SHOAL_ASSIGN(const Ticket ticket, parse_ticket(arguments_.source));
    SHOAL_ASSIGN(const KeyPair key, key_beside_join(global_, arguments_.own_key));
    SHOAL_ASSIGN(wire_, make_zmq_wire(loop_, {.key = key,
                                              .listen = "127.0.0.1:0",  // nobody needs to dial a reader
                                              .admission = Admission::kOpen,
                                              .admitted = {},
                                              .run = ticket.run}));
    SHOAL_ASSIGN(const std::vector<std::string> contacts, contacts_of(ticket));
    SHOAL_TRY(check_routes(contacts));
    ReaderOptions options{.run = ticket.run, .self = key.id(), .launching = {contacts}};
    options.text.patience = from_seconds(arguments_.patience_s);
    reader_ = std::make_unique<Reader>(std::move(options), *wire_, loop_, Rng(entropy_seed()));
    SHOAL_ASSIGN(signals_, StopSignals::listen(
                               loop_, [] {}, [] {}));  // wait() looks
    loop_.post([this] { reader_->start(); });
    return {};
  }

  bool wait(const std::function<bool()>& until) {
    constexpr Duration kLook = 5ms;
    std::function<void()> look = [&] {
      if (until() || stop_wanted()) return loop_.stop();
      loop_.after(kLook, look);
    };
    loop_.post(look);
    loop_.run();
    return until();
  }

  const GenerateArguments& arguments_;
  const GlobalOptions& global_;
  ThreadLoop loop_;
  std::unique_ptr<ZmqWire> wire_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<StopSignals> signals_;
};

int run(const GenerateArguments& arguments, const GlobalOptions& global) {
  if (bare_ticket(arguments.source).starts_with("shoal1:")) return SwarmReading(arguments, global).run();
  return run_here(arguments, global.json);
}

}  // namespace

void add_generate(Command& app, Program& program) {
  Command command =
      app.add_subcommand("generate", "a model, or the one that a swarm trains just now, goes on with a text");
  auto arguments = std::make_shared<GenerateArguments>();
  arguments->compute.forward_only = true;
  GenerateOptions& options = arguments->options;
  command
      .add_option("source", arguments->source,
                  "folder that --save wrote or transformers saved, or what `shoal launch` printed")
      .required()
      .type_name("DIR|TICKET");
  command.add_option("--prompt", options.prompt, "the text that goes on").type_name("TEXT");
  command.add_option("--tokens", options.tokens, "at most so many are added (default: 128)").in(1, 1'000'000);
  command
      .add_option("--temperature", options.sampling.temperature,
                  "of the draw: below 1 likelier tokens are drawn more often; 0 = always the likeliest (default: 0.8)")
      .within(0.0, 100.0);
  command.add_option("--top-k", options.sampling.top_k, "draw among the k likeliest only; 0 = all (default: 0)");
  command
      .add_option("--top-p", options.sampling.top_p,
                  "draw among the likeliest only that together have this probability (default: 1)")
      .within(1e-6, 1.0);
  command.add_option("--seed", options.sampling.seed, "of the draw (default: 0)");
  command.add_flag("--go-on", options.go_on, "also behind an end of text");
  command.add_flag("--no-bos", arguments->no_bos, "without what the tokenizer puts in front of a text");
  add_saved_options(command, arguments->tokenizer, arguments->base, "the folder's; bytes where there is none");
  command.add_flag("--own-key", arguments->own_key,
                   "TICKET: with this machine's key, for a run that admits listed keys (default: a new one)");
  command
      .add_option("--patience", arguments->patience_s,
                  "TICKET: seconds that a token may take, over all stages and peers (default: 60)")
      .within(1.0, 86400.0);
  add_compute_options(command, arguments->compute);
  run_when_named(command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global); });
}

}  // namespace shoal
