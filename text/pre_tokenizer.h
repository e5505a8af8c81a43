#pragma once
// Cuts a text into the pieces within which tokens are merged, step by step, as `tokenizers` does.
// Immutable; thread-safe.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/split_pattern.h"

namespace shoal {

// What becomes of a part that a pattern finds.
enum class SplitBehaviour { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct SplitStep {
  SplitPattern pattern;
  SplitBehaviour behaviour = SplitBehaviour::kIsolated;
  bool inverted = false;  // the parts between what it finds are what it finds
};
struct PrefixSpaceStep {};  // a space before a piece that has none
// Spaces become `mark`, and a piece gets one in front.
struct MarkSpacesStep {
  enum class Prefix { kNever, kFirst, kAlways };
  std::string mark;
  Prefix prefix = Prefix::kAlways;  // kFirst: only what begins the whole text
};
using PreStep = std::variant<SplitStep, PrefixSpaceStep, MarkSpacesStep>;

class PreTokenizer {
 public:
  using Take = std::function<void(std::string_view piece)>;  // the piece lives as long as the call

  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<PreStep> steps) : steps_(std::move(steps)) {}

  // Gives the pieces of `text` to `take`, in order; none is empty. `at_start`: whether it begins the whole text.
  // REQUIRES: valid UTF-8.
  void cut(std::string_view text, bool at_start, MatchRoom& room, const Take& take) const;
  // Where the text that is cut from `text` on ends its first piece, or begins it, if that is behind `text`'s begin;
  // nothing: more text behind `text` could change it. By the steps up to the first one that puts something in; the
  // others see single pieces. REQUIRES: valid UTF-8, not empty.
  std::optional<std::size_t> first_end(std::string_view text, MatchRoom& room) const;

 private:
  struct Run;
  std::vector<PreStep> steps_;
};

}  // namespace shoal
