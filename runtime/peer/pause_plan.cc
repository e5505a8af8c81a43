#include "runtime/peer/pause_plan.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace shoal {
namespace {

constexpr int kHour = 60, kDay = 24 * kHour;  // minutes

std::optional<int> number_of(std::string_view text, int most) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value >= 0 && value <= most ? std::optional(value) : std::nullopt;
}

// "8", "22:30", "24".
std::optional<int> minute_of(std::string_view text) {
  const auto colon = text.find(':');
  const auto hour = number_of(text.substr(0, colon), 24);
  const bool whole = colon == std::string_view::npos;
  const auto minute = whole ? std::optional(0) : number_of(text.substr(colon + 1), kHour - 1);
  if (!hour || !minute || (!whole && text.size() != colon + 3) || *hour * kHour + *minute > kDay) return std::nullopt;
  return *hour * kHour + *minute;
}

}  // namespace

Result<LendHours> LendHours::parse(const std::string& text) {
  LendHours hours;
  hours.text_ = text;
  std::string_view rest = text;
  while (true) {
    const std::string_view span = rest.substr(0, rest.find(','));
    const auto dash = span.find('-');
    const auto from = minute_of(span.substr(0, dash));
    const auto to = dash == std::string_view::npos ? std::nullopt : minute_of(span.substr(dash + 1));
    if (!from || !to || *from % kDay == *to % kDay)
      return make_error(ErrorCode::kInput, "--hours " + text + ": \"" + std::string(span) +
                                               "\" is no time from one to another. HINT: as 22-8 or 9:30-12,14-18:15");
    hours.spans_.push_back({*from % kDay, *to});
    if (span.size() == rest.size()) return hours;
    rest.remove_prefix(span.size() + 1);
  }
}

bool LendHours::hold(int minute_of_day) const {
  return std::ranges::any_of(spans_, [&](const Span& span) {
    if (span.from < span.to) return minute_of_day >= span.from && minute_of_day < span.to;
    return minute_of_day >= span.from || minute_of_day < span.to;
  });
}

std::optional<std::string> PausePlan::look(int minute_of_day, const std::string& busy) {
  std::optional<std::string> why;
  if (!busy.empty()) why = busy;
  if (hours_ && !hours_->hold(minute_of_day)) why = "outside the hours " + hours_->text();
  if (word_ == Word::kPause) return "by its owner";
  if (!why) word_ = Word::kNone;
  return word_ == Word::kResume ? std::nullopt : why;
}

}  // namespace shoal
