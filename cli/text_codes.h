#pragma once
// Which ids stand for a text: those of the tokenizer that is named or lies beside a model, or bytes.
#include <string>

#include "runtime/generate/text_code.h"

namespace shoal {

// `named`: a tokenizer.json; empty: the one in `folder`, or bytes where the vocabulary is theirs. ERRORS: Tokenizer's;
// kInput (no tokenizer and no bytes; one of more ids than the model knows).
Result<TextCode> code_of(const std::string& named, const std::string& folder, std::uint32_t vocabulary);

}  // namespace shoal
