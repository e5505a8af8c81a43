#pragma once
// A text goes on: id after id, each drawn from the logits behind those before it.
// Thread: one.   Borrows: the model for the call.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "runtime/generate/sampler.h"
#include "runtime/generate/text_code.h"

namespace shoal {

// A model that continues one text: here, or in a swarm.
class TextModel {
 public:
  virtual ~TextModel() = default;
  // Appends ids, at least one, and returns the logits (V) behind the last one. ERRORS: the model's.
  virtual Result<std::vector<float>> extend(std::span<const std::uint32_t> ids) = 0;
  virtual std::uint64_t context() const = 0;  // places at most
  virtual void restart() = 0;                 // forgets the text
};

struct GenerateOptions {
  std::string prompt;  // empty: the text begins behind an end of text
  std::uint64_t tokens = 128;
  SamplingOptions sampling;
  bool go_on = false;  // also behind an end of text
};

struct Generated {
  std::vector<std::uint32_t> prompt, ids;  // what was given, and what came
  std::string text;                        // of `ids`
  std::string stopped_by;                  // "tokens", "end of text", "interrupted"
};

// Beyond the context the text goes on from its last half, as if that were all: what stood before is forgotten.
// `shown`: called with each piece of the text as it comes, whole characters; false stops the text. ERRORS: kInput (no
// prompt and no end of text to begin behind, a prompt as long as the context, ids beyond the vocabulary), the model's.
Result<Generated> generate(const GenerateOptions& options, const TextCode& code, TextModel& model,
                           const std::function<bool(const std::string& piece)>& shown);

}  // namespace shoal
