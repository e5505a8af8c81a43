#pragma once
// shoal-bench tokenizer: how fast a text becomes ids on one thread and on several, and, where a Python has the package
// `tokenizers`, how fast that package does the same and whether its ids are the same.
#include <string>

#include "common/result.h"

namespace shoal {

struct TokenizerBenchOptions {
  std::string tokenizer;               // tokenizer.json
  std::string text;                    // a file
  std::string ids;                     // a file for them, 32 bits each, little-endian; empty: none
  std::size_t document_bytes = 16384;  // a document ends with the first line that ends behind so many
  int threads = 2;
  bool json = false;
};

// Prints a table, or one JSON object, to stdout. The Python is that of SHOAL_PYTHON; without one nothing is compared.
Status run_tokenizer_bench(const TokenizerBenchOptions& options);

}  // namespace shoal
