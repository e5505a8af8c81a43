#pragma once
// Which files a run's text is in, and how it is cut: what RUN.toml says of them, for the rooms that do not know it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/tensor_view.h"

namespace shoal {

struct TextFiles {
  std::vector<std::string> paths;
  std::vector<double> weights = {};             // of the files among the training samples; empty: by their sizes
  std::string validation = {};                  // empty: the last tenth of each of the others
  std::string tokenizer = {};                   // empty: none is known
  std::vector<Digest> digests = {};             // what the files must have, the validation's last; empty: any
  std::optional<Digest> tokenizer_digest = {};  // what the tokenizer must have; nothing: any
  DType width = DType::kU8;
  std::uint32_t vocabulary = 256;
  std::uint32_t sequences = 0, positions = 0;  // of one sample
};

}  // namespace shoal
