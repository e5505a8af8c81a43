#pragma once
// The open files of a run's text, in the order in which RUN.toml names them, and what they must agree on.
#include <optional>
#include <vector>

#include "common/result.h"
#include "runtime/data/token_file.h"
#include "text/text_files.h"

namespace shoal {

// Immutable once open; thread-safe.
struct TextSet {
  std::vector<TokenFile> training;
  std::optional<TokenFile> validation;
  std::vector<double> weights;      // of `training`; empty: by size
  std::optional<Digest> tokenizer;  // that made the ids, where a tokenizer's file, a manifest or a sidecar says so

  // ERRORS: TokenFile's; kInput (a file or tokenizer that is not the one whose digest is given; a sidecar that names
  // another tokenizer than the rest); of the tokenizer's file kMissing, kIo, kTooLarge.
  static Result<TextSet> open(const TextFiles& files);
  static TextSet of(TokenFile file);

  // BLAKE2b-256 of each file, the validation's last.
  std::vector<Digest> digests() const;
  // One for all: of a single file its own, else BLAKE2b-256 of all of them, one behind the other.
  Digest digest() const;
};

}  // namespace shoal
