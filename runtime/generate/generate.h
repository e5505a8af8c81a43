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
  std::string prompt;  // empty: the text begins behind what begins one, or behind an end of text
  std::uint64_t tokens = 128;
  SamplingOptions sampling;
  bool go_on = false;  // also behind an end of text
  bool begin = true;   // what the tokenizer puts in front of a text stands in front of the prompt
};

struct Generated {
  std::vector<std::uint32_t> prompt, ids;  // what was given, and what came
  std::string text;                        // of `ids`
  std::string stopped_by;                  // "tokens", "end of text", "interrupted"
};

// A text on its way, between a model and a reader that may both be slow: next() goes to the model, take() gets what it
// said. Beyond the context the text goes on from its last half, as if that were all: what stood before is forgotten.
class Generation {
 public:
  // ERRORS: kInput (no prompt and no end of text to begin behind, a prompt as long as the context).
  static Result<Generation> begin(const GenerateOptions& options, TextCode code, std::uint64_t context);

  bool over() const { return !made_.stopped_by.empty(); }
  // The ids that the model is to append. REQUIRES: !over().
  const std::vector<std::uint32_t>& next() const { return next_; }
  bool anew() const { return anew_; }  // it forgets the text first
  // The logits (V) behind next(). Returns the piece of text that can be shown now: whole characters, or nothing.
  std::string take(std::span<const float> logits);
  // No more is wanted. Returns what was held back of the text.
  std::string stop(std::string why);
  const Generated& made() const { return made_; }

 private:
  Generation(const GenerateOptions& options, TextCode code, std::uint64_t context)
      : options_(options), code_(std::move(code)), context_(context), sampler_(options.sampling) {}
  void plan_next(std::uint32_t id);

  GenerateOptions options_;
  TextCode code_;
  std::uint64_t context_ = 0, places_ = 0;  // that the model has, with those in next_
  Sampler sampler_;
  WholeCharacters whole_;
  std::vector<std::uint32_t> next_;
  bool anew_ = false;
  Generated made_;
};

// All of it, with a model that answers at once. `shown`: called with each piece of the text as it comes; false stops
// the text. ERRORS: Generation::begin's, the model's.
Result<Generated> generate(const GenerateOptions& options, const TextCode& code, TextModel& model,
                           const std::function<bool(const std::string& piece)>& shown);

}  // namespace shoal
