// shoal data prepare|info: token files of text files, and what a token file has.
#include <algorithm>
#include <cstdio>

#include "cli/document_inputs.h"
#include "cli/program.h"
#include "common/log.h"
#include "common/os/batch_work.h"
#include "common/os/thread_loop.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"
#include "events/line_parts.h"
#include "runtime/data/token_file.h"

namespace shoal {
namespace {

void print_json(const Json& json) { std::printf("%s\n", json.text().c_str()); }

Json json_of(const TokenSidecar& sidecar) { return *Json::read(sidecar_text(sidecar)); }

// ---- prepare ----
struct PrepareArguments {
  DocumentInputs inputs;
  std::string tokenizer, out, width = "auto", format = "plain";
  bool no_bos = false, no_eot = false;
  unsigned threads = 0;  // 0: one for each processor
};

PrepareOptions options_of(const PrepareArguments& arguments) {
  return {.inputs = arguments.inputs.files,
          .out = arguments.out,
          .documents = arguments.inputs.options(),
          .width = width_named(arguments.width),
          .header = arguments.format == "llmc" ? TokenHeader::kLlmc : TokenHeader::kNone,
          .begin_of_text = !arguments.no_bos,
          .end_of_text = !arguments.no_eot,
          .threads = arguments.threads};
}

void print_prepared(const Prepared& prepared, const PrepareArguments& arguments, double seconds) {
  const TokenSidecar& sidecar = prepared.sidecar;
  std::printf("%s: %llu tokens of %s, %llu documents, %llu bytes of text (%.3f bytes a token) in %.1f s\n",
              printable(arguments.out).c_str(), static_cast<unsigned long long>(sidecar.tokens),
              std::string(name_of_width(sidecar.width)).c_str(), static_cast<unsigned long long>(sidecar.documents),
              static_cast<unsigned long long>(prepared.text_bytes),
              static_cast<double>(prepared.text_bytes) / static_cast<double>(sidecar.tokens), seconds);
  std::printf("in RUN.toml: [data] width = \"%s\", tokenizer; [model] vocabulary = %u\n",
              std::string(name_of_width(sidecar.width)).c_str(), sidecar.vocabulary);
}

int prepare(const PrepareArguments& arguments, bool json) {
  begin_batch_work();
  const TimePoint begun = monotonic_now();
  const auto prepared = prepare_with(arguments.tokenizer, options_of(arguments));
  if (!prepared.ok()) return fail_or_stopped(prepared.error());
  if (prepared->empty_documents > 0) log_info("skipped ", prepared->empty_documents, " empty documents");
  const double seconds = seconds_of(monotonic_now() - begun);
  if (json) {
    Json out = json_of(prepared->sidecar);
    out.set("schema", "shoal.data.prepare/1");
    out.set("empty_documents", prepared->empty_documents);
    out.set("text_bytes", prepared->text_bytes);
    out.set("seconds", seconds);
    print_json(out);
  } else {
    print_prepared(*prepared, arguments, seconds);
  }
  return kExitOk;
}

// ---- info ----
struct InfoArguments {
  std::string file, width = "auto";
};

int info(const InfoArguments& arguments, bool json) {
  const auto width = width_of(arguments.file, arguments.width);
  if (!width.ok()) return fail(width.error());
  const auto file = TokenFile::open(arguments.file, *width, UINT32_MAX);
  if (!file.ok()) return fail(file.error());
  std::uint32_t least = UINT32_MAX, most = 0;
  for (std::size_t i = 0; i < file->tokens(); ++i) {
    const std::uint32_t id = id_at(file->ids(), *width, i);
    least = std::min(least, id);
    most = std::max(most, id);
  }
  const auto& sidecar = file->sidecar();
  Json out = {{"schema", "shoal.data.info/1"},
              {"path", arguments.file},
              {"width", name_of_width(*width)},
              {"header", name_of(file->header())},
              {"tokens", file->tokens()},
              {"id_min", file->tokens() == 0 ? 0 : least},
              {"id_max", most},
              {"digest", hex_of(file->digest())},
              {"sidecar", nullptr}};
  if (sidecar) out.set("sidecar", json_of(*sidecar));
  if (json) {
    print_json(out);
    return kExitOk;
  }
  std::printf("%s: %llu tokens of %s, ids %u to %u, header %s\nBLAKE2b-256 %s\n", printable(arguments.file).c_str(),
              static_cast<unsigned long long>(file->tokens()), std::string(name_of_width(*width)).c_str(),
              file->tokens() == 0 ? 0 : least, most, std::string(name_of(file->header())).c_str(),
              hex_of(file->digest()).c_str());
  if (!sidecar) {
    std::printf("no sidecar\n");
    return kExitOk;
  }
  std::printf("%llu documents of %zu files, a tokenizer of %u ids, BLAKE2b-256 %s\n",
              static_cast<unsigned long long>(sidecar->documents), sidecar->source.size(), sidecar->vocabulary,
              hex_of(sidecar->tokenizer).c_str());
  return kExitOk;
}

void add_prepare(Command& group, Program& program) {
  Command command = group.add_subcommand("prepare", "make a token file of text files");
  auto arguments = std::make_shared<PrepareArguments>();
  add_document_inputs(command, arguments->inputs);
  command.add_option("--tokenizer", arguments->tokenizer, "the tokenizer.json that makes the ids")
      .required()
      .type_name("FILE");
  command.add_option("--out", arguments->out, "write the token file here, and FILE.json beside it")
      .required()
      .type_name("FILE");
  command.add_option("--width", arguments->width, "of an id; auto: u16 where the vocabulary allows it (default)")
      .one_of({"auto", "u16", "u32"});
  command.add_option("--format", arguments->format, "ids alone (default), or behind llm.c's header")
      .one_of({"plain", "llmc"});
  command.add_flag("--no-bos", arguments->no_bos, "without what the tokenizer puts in front of a text");
  command.add_flag("--no-eot", arguments->no_eot, "no end-of-text id behind each document");
  command.add_option("--threads", arguments->threads, "that encode (default: one for each processor)").in(1u, 1024u);
  run_when_named(command, program,
                 [arguments](const GlobalOptions& global) { return prepare(*arguments, global.json); });
}

}  // namespace

void add_data(Command& app, Program& program) {
  Command group = app.add_subcommand("data", "token files and tokenizers: prepare, info, train-tokenizer");
  group.require_subcommand();
  add_prepare(group, program);
  add_train_tokenizer(group, program);
  Command command = group.add_subcommand("info", "what a token file has");
  auto arguments = std::make_shared<InfoArguments>();
  command.add_option("file", arguments->file, "the token file").required().type_name("FILE");
  command.add_option("--width", arguments->width, "of an id, where the file does not say it")
      .one_of({"auto", "u8", "u16", "u32"});
  run_when_named(command, program, [arguments](const GlobalOptions& global) { return info(*arguments, global.json); });
}

}  // namespace shoal
