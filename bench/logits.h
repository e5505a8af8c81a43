#pragma once
// `shoal-bench logits`: the logits behind each token of a sequence, of a model in a folder as Python's transformers has
// it. scripts/verify-hf compares them with those of transformers.
#include <string>

namespace shoal {

struct LogitsOptions {
  std::string folder;
  std::string tokens;  // file: ids of 32 bits, little-endian
  std::string out;     // file: F32, (tokens, vocabulary)
};

// Returns the exit code: 0, or 1 with the reason on stderr.
int run_logits(const LogitsOptions& options);

}  // namespace shoal
