#pragma once
// tokenizer.json as plain parts. Pure; thread: any.
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/tokenizer_steps.h"

namespace shoal {

struct TokenizerFile {
  std::vector<std::string> contents;  // by id, as the file writes them; added ones last
  std::unordered_map<std::string, std::uint32_t> ids;
  BpeRules rules;
  std::vector<AddedToken> added;
  Normaliser normaliser;
  PreTokenizerPlan pre_tokenizer;
  std::vector<DecodeStep> decoder;
  std::vector<std::uint32_t> begin;  // what the post-processor puts in front of a text
};

// "truncation" and "padding" are not read, nor what a post-processor puts behind a text.
// ERRORS: kMalformed, kUnsupported, kTooLarge, each with key and value.
Result<TokenizerFile> read_tokenizer_file(ByteView json);

}  // namespace shoal
