#include "cli/document_inputs.h"

#include <CLI/CLI.hpp>

#include "cli/outcome.h"
#include "common/os/stop_signals.h"

namespace shoal {

void add_document_inputs(CLI::App& command, DocumentInputs& inputs) {
  command.add_option("inputs", inputs.files, "text files, a document each; .jsonl: one a line; also .gz and .zst")
      ->required()
      ->type_name("IN");
  command.add_option("--field", inputs.field, "of .jsonl: the field with the document (default: text)");
  command.add_option("--documents", inputs.documents, "of other files: each is a document (default), or each line")
      ->check(CLI::IsMember({"files", "lines"}));
}

int fail_or_stopped(const Error& error) {
  return error.code == ErrorCode::kInterrupted ? fail(error, static_cast<ExitCode>(stop_exit_code())) : fail(error);
}

}  // namespace shoal
