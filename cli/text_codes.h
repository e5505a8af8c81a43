#pragma once
// Which ids stand for a text: those of the tokenizer that is named or lies beside a model, or bytes; and which end it,
// as the files beside model and tokenizer say.
#include <optional>
#include <string>

#include "common/crypto/hash.h"
#include "runtime/generate/text_code.h"

namespace shoal {

struct TextCodeNeed {
  std::string of;                   // the model, for messages
  std::string named{};              // a tokenizer.json; empty: the one in `folder`, or bytes
  std::string folder{};             // of the model; empty: it has none
  std::uint32_t vocabulary = 0;     // of the model
  std::vector<Digest> tokenizer{};  // that made its ids, where its manifest says so: one, or none
};

// " begins with ID, as ...": what Tokenizer::begin() puts in front of a text, said; empty: nothing.
std::string begin_said(const std::vector<std::uint32_t>& begin);

// ERRORS: Tokenizer's; kInput (no tokenizer and no bytes; another tokenizer than the model's; one of more ids than it
// knows).
Result<TextCode> code_of(const TextCodeNeed& need);

}  // namespace shoal
