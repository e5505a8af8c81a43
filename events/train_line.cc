#include "events/train_line.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace shoal {

std::string short_number(double value) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  const int decimals = std::abs(value) >= 99.95 || (unit == 0 && value == std::floor(value)) ? 0
                       : std::abs(value) >= 9.995                                            ? 1
                                                                                             : 2;
  std::snprintf(text, sizeof text, "%.*f%s", decimals, value, kUnits[unit]);
  return text;
}

std::string delay_text(double delay) {
  char text[32];
  std::snprintf(text, sizeof text, "delay %.1f", delay);
  return text;
}

std::string clock_text(Duration elapsed) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(elapsed).count();
  char text[48];
  std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", static_cast<long long>(seconds / 3600),
                static_cast<long long>(seconds / 60 % 60), static_cast<long long>(seconds % 60));
  return text;
}

std::string text_of(const TrainLine& line) {
  char head[96];
  if (line.steps > 0) {
    std::snprintf(head, sizeof head, "step %5llu/%llu | loss %.4f", static_cast<unsigned long long>(line.step),
                  static_cast<unsigned long long>(line.steps), line.loss);
  } else {
    std::snprintf(head, sizeof head, "step %5llu | loss %.4f", static_cast<unsigned long long>(line.step), line.loss);
  }
  std::string text = std::string(head) + " | " + short_number(line.tokens_per_s) + " tok/s | tokens " +
                     short_number(static_cast<double>(line.tokens));
  if (!line.peers.empty()) {
    text += " | peers";
    for (std::uint32_t count : line.peers) text += " " + std::to_string(count);
  }
  if (line.retries) text += " | retries " + std::to_string(*line.retries);
  if (line.delay) text += " | " + delay_text(*line.delay);
  return text + " | " + clock_text(line.elapsed);
}

double LossCurve::first() const { return losses_.empty() ? 0 : losses_.front(); }

double LossCurve::last() const {
  if (losses_.empty()) return 0;
  const std::size_t count = std::clamp<std::size_t>(losses_.size() / 10, 1, 20);
  return std::accumulate(losses_.end() - static_cast<std::ptrdiff_t>(count), losses_.end(), 0.0) /
         static_cast<double>(count);
}

}  // namespace shoal
