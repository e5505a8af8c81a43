#pragma once
// The parts of tokenizer.json that say what is done with a text, one JSON object each. What we do not have is refused
// with its key and value. Pure functions; thread: any. Bounds: kNestingMax sequences in each other.
#include <string>
#include <vector>

#include "common/result.h"
#include "text/normaliser.h"
#include "text/pre_tokenizer.h"
#include "text/token_decoder.h"

namespace shoal {

inline constexpr int kNestingMax = 8;
inline constexpr std::size_t kStepsMax = 32;

struct PreTokenizerPlan {
  std::vector<PreStep> steps;
  bool byte_level = false;  // the pieces become bytes behind the last step
};

// Each takes the text of a JSON value, `null` among them. ERRORS: kMalformed, kUnsupported, kTooLarge.
Result<Normaliser> read_normalizer(const std::string& json);
Result<PreTokenizerPlan> read_pre_tokenizer(const std::string& json);
Result<std::vector<DecodeStep>> read_decoder(const std::string& json);

}  // namespace shoal
