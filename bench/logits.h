#pragma once
// `shoal-bench logits`: the logits behind each token of a sequence, of a model in a folder as Python's transformers has
// it. scripts/verify-hf compares them with those of transformers.
#include <string>

#include "common/result.h"

namespace shoal {

struct LogitsOptions {
  std::string folder;
  std::string tokens;  // file: ids of 32 bits, little-endian
  std::string out;     // file: F32, (tokens, vocabulary)
};

Status run_logits(const LogitsOptions& options);

}  // namespace shoal
