#pragma once
// What begins and ends a text, as the files say it that Python's transformers saves beside a model or a tokenizer.
// Thread: any; blocking file I/O.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace shoal {

struct TextEnds {
  std::string begin, end;                 // contents of tokens: bos_token and eos_token; empty: not said
  std::optional<std::uint32_t> begin_id;  // bos_token_id
  std::vector<std::uint32_t> end_ids;     // eos_token_id, one or a list: behind any of them a text is over
};

// Contents are those of tokenizer_config.json, else special_tokens_map.json, in the folder of the file `tokenizer`,
// else in the folder `model`; ids those of generation_config.json, else config.json, in `model`, else beside
// `tokenizer`. Either may be empty. A file that is not there or no JSON object says nothing.
TextEnds text_ends_of(const std::string& model, const std::string& tokenizer);

inline constexpr char kTokenizerConfigName[] = "tokenizer_config.json",
                      kGenerationConfigName[] = "generation_config.json";
// The same as those files say it, for a folder of its own; empty: nothing is said.
std::string tokenizer_config_text(const TextEnds& ends);
std::string generation_config_text(const TextEnds& ends);

// What stands behind a document: the token of `end`, else the first of `end_ids`, else Tokenizer::end_of_text().
std::optional<std::uint32_t> document_end(const TextEnds& ends, const Tokenizer& tokenizer);
// What ends a text that a model writes: `end_ids`, else what stands behind a document.
std::vector<std::uint32_t> writing_ends(const TextEnds& ends, const Tokenizer& tokenizer);

}  // namespace shoal
