#pragma once
// When a machine that is lent serves, and when it pauses: by its owner's word, by the hours that it is lent in, and by
// what else its GPU does. Values; the time is handed in.   Thread: one at a time.
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

// "22-8", "9:30-12,14-18:15": times of the day, the end not among them. One that ends before it begins goes over
// midnight.
class LendHours {
 public:
  // ERRORS: kInput.
  static Result<LendHours> parse(const std::string& text);
  bool hold(int minute_of_day) const;
  const std::string& text() const { return text_; }

 private:
  struct Span {
    int from = 0, to = 0;  // minutes of the day
  };
  std::vector<Span> spans_;
  std::string text_;
};

class PausePlan {
 public:
  explicit PausePlan(std::optional<LendHours> hours) : hours_(std::move(hours)) {}

  // The owner's word goes before everything else: a pause until a resume, a resume until what would have the machine
  // pause is over.
  void owner_pauses() { word_ = Word::kPause; }
  void owner_resumes() { word_ = Word::kResume; }
  // Why it is to pause now; none: it serves. `busy`: what else the GPU does, for people; empty: nothing.
  std::optional<std::string> look(int minute_of_day, const std::string& busy);

 private:
  enum class Word : std::uint8_t { kNone, kPause, kResume };
  const std::optional<LendHours> hours_;
  Word word_ = Word::kNone;
};

}  // namespace shoal
