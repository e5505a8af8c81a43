// shoal data train-tokenizer: a tokenizer of one's own, learned from text files.
#include <cstdio>
#include <filesystem>

#include "cli/document_inputs.h"
#include "cli/program.h"
#include "common/log.h"
#include "common/os/batch_work.h"
#include "common/os/posix_file.h"
#include "common/os/stop_signals.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "events/headway.h"
#include "text/tokenizer.h"
#include "text/train_bpe.h"

namespace shoal {
namespace {

struct TrainArguments {
  DocumentInputs inputs;
  std::string out;
  std::uint32_t vocabulary = 0;
};

Status read_all(const DocumentInputs& inputs, BpeTrainer& trainer) {
  DocumentReader reader(inputs.files, inputs.options());
  const std::uint64_t total = bytes_of_files(inputs.files);
  HeadwayMeter meter;
  Piece piece;
  while (true) {
    SHOAL_ASSIGN(const bool given, reader.next(piece));
    if (!given) {
      end_status();
      say_changes(reader.changes());
      return {};
    }
    if (stop_wanted()) return make_error(ErrorCode::kInterrupted, "no tokenizer was written: interrupted");
    trainer.add(piece.text);
    show_headway(meter, {.what = "counting words", .done = reader.taken(), .total = total, .bytes = true});
  }
}

// The tokenizer, once its file is there.
Result<Tokenizer> train(const TrainArguments& arguments) {
  SHOAL_TRY(check_output_file(arguments.out, arguments.inputs.files));
  BpeTrainer trainer;
  SHOAL_TRY(read_all(arguments.inputs, trainer));
  SHOAL_ASSIGN(const std::string text, trainer.finish(arguments.vocabulary, [] { return stop_wanted(); }));
  const Bytes file = Bytes::copy_of(std::string_view(text));
  SHOAL_ASSIGN(Tokenizer tokenizer, Tokenizer::parse(file, arguments.out));
  SHOAL_TRY(replace_file(arguments.out, {file}));
  return tokenizer;
}

int run(const TrainArguments& arguments, bool json) {
  begin_batch_work();
  listen_for_stop();
  const auto tokenizer = train(arguments);
  end_status();
  if (!tokenizer.ok()) return fail_or_stopped(tokenizer.error());
  const std::uint32_t vocabulary = tokenizer->vocabulary();
  if (vocabulary < arguments.vocabulary)
    log_warning("the texts have no more pairs that come twice: the tokenizer has ", vocabulary, " tokens instead of ",
                arguments.vocabulary, ". HINT: give more text");
  if (json) {
    const Json out = {{"schema", "shoal.data.train-tokenizer/1"},
                      {"path", arguments.out},
                      {"vocabulary", vocabulary},
                      {"digest", hex_of(tokenizer->digest())}};
    std::printf("%s\n", out.text().c_str());
  } else {
    std::printf("%s: %u tokens, BLAKE2b-256 %s\n", printable(arguments.out).c_str(), vocabulary,
                hex_of(tokenizer->digest()).c_str());
  }
  return kExitOk;
}

}  // namespace

void add_train_tokenizer(Command& group, Program& program) {
  Command command = group.add_subcommand("train-tokenizer", "learn a byte-level BPE from text files");
  auto arguments = std::make_shared<TrainArguments>();
  add_document_inputs(command, arguments->inputs);
  command.add_option("--vocabulary", arguments->vocabulary, "how many tokens it gets")
      .required()
      .in(kTrainedVocabularyMin, kTrainedVocabularyMax);
  command.add_option("--out", arguments->out, "write the tokenizer.json here").required().type_name("FILE");
  run_when_named(command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global.json); });
}

}  // namespace shoal
