#pragma once
// What a text goes through before it is cut: Unicode's normal forms, a prefix, replacements.
// Immutable; thread-safe. Bounds: kNormalStepsMax steps, which grow a text at most kNormalGrowthMax times.
#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/result.h"

namespace shoal {

inline constexpr std::size_t kNormalStepsMax = 16;
inline constexpr std::size_t kNormalGrowthMax = 256;

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
struct PrependText {
  std::string text;
};
struct ReplaceText {
  std::string from;
  std::string to;
  // By how much it may multiply a text, rounded up. REQUIRES: from is not empty.
  std::size_t growth() const { return std::max<std::size_t>(1, (to.size() + from.size() - 1) / from.size()); }
};
using NormalStep = std::variant<NormalForm, PrependText, ReplaceText>;

class Normaliser {
 public:
  Normaliser() = default;
  // ERRORS: kUnsupported (too many steps, too much growth).
  static Result<Normaliser> make(std::vector<NormalStep> steps);

  bool empty() const { return steps_.empty(); }
  // `text`, or what became of it in `room`, which the answer then borrows. REQUIRES: valid UTF-8.
  std::string_view apply(std::string_view text, std::string& room) const;

 private:
  std::vector<NormalStep> steps_;
};

// Every `from` in `text`, from left to right, becomes `to`. REQUIRES: from is not empty.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace shoal
