#pragma once
// What the commands that read texts share: which files, and what in them is a document.
#include <cstdint>
#include <string>
#include <vector>

#include "cli/program.h"
#include "common/result.h"
#include "text/documents.h"
#include "text/prepare.h"

namespace shoal {

struct DocumentInputs {
  std::vector<std::string> files;
  std::string field = "text", documents = "files";
  DocumentOptions options() const { return {.field = field, .lines = documents == "lines"}; }
};
void add_document_inputs(Command& command, DocumentInputs& inputs);

// A subcommand of `data`, in a file of its own.
void add_train_tokenizer(Command& group, Program& program);

// prepare_text() with the tokenizer of this file, and what the files beside it say of the end of a text, until a
// signal; its headway is the status of this process. No threads named: one for each processor. Says what was read
// otherwise. ERRORS: Tokenizer::load's, prepare_text()'s.
Result<Prepared> prepare_with(const std::string& tokenizer, PrepareOptions options);

// A warning of each kind.
void say_changes(const TextChanges& changes);

}  // namespace shoal
