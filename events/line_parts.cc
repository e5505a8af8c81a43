#include "events/line_parts.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "common/formatted.h"

namespace shoal {
namespace {

constexpr double kNamedBelow = 999.5e18;  // behind it there is no unit

std::string joined(const std::vector<LinePart>& parts, std::string_view gap) {
  std::string line;
  for (const LinePart& part : parts) {
    if (!line.empty()) line += gap;
    line += part.text;
  }
  return line;
}

// REQUIRES: longer than `columns`.
std::string cut(const std::string& line, std::size_t columns) {
  constexpr std::string_view kCut = "...";
  return columns <= kCut.size() ? line.substr(0, columns) : line.substr(0, columns - kCut.size()).append(kCut);
}

}  // namespace

std::string fitted(std::vector<LinePart> parts, std::size_t columns) {
  std::erase_if(parts, [](const LinePart& part) { return part.text.empty(); });
  if (std::string wide = joined(parts, "  "); wide.size() <= columns) return wide;
  while (true) {
    std::string line = joined(parts, " ");
    if (line.size() <= columns) return line;
    const auto least = std::max_element(parts.begin(), parts.end(),
                                        [](const LinePart& a, const LinePart& b) { return a.rank < b.rank; });
    if (least == parts.end() || least->rank == 0) return cut(line, columns);
    parts.erase(least);
  }
}

std::string short_number(double value) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  if (!std::isfinite(value) || std::abs(value) >= kNamedBelow) return formatted("%.1e", value);
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  const int decimals = std::abs(value) >= 99.95 || (unit == 0 && value == std::floor(value)) ? 0
                       : std::abs(value) >= 9.995                                            ? 1
                                                                                             : 2;
  return formatted("%.*f%s", decimals, value, kUnits[unit]);
}

std::string short_number(std::uint64_t value) { return short_number(static_cast<double>(value)); }

std::string brief_number(double value) {
  const std::string text = short_number(value);
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos || text.find('e') != std::string::npos) return text;
  // Cut and not rounded: figures of the moment.
  const std::size_t digits = dot >= 2 && text[dot - 1] != '-' && text[0] != '-' ? 0 : 1;
  const std::string unit(1, text.back());
  return text.substr(0, digits == 0 ? dot : dot + 2) + (text.back() >= '0' && text.back() <= '9' ? "" : unit);
}

std::string loss_text(double loss) { return std::abs(loss) < 1000 ? formatted("%.3f", loss) : formatted("%.1e", loss); }

std::string percent_text(std::uint64_t done, std::uint64_t total) {
  if (total == 0) return "";
  if (done >= total) return "100%";
  return formatted("%.0f%%",
                   std::min(99.0, std::floor(100 * (static_cast<double>(done) / static_cast<double>(total)))));
}

std::string span_text(Duration span) {
  const auto seconds =
      static_cast<long long>(std::chrono::ceil<std::chrono::seconds>(std::max<Duration>(span, 0s)).count());
  if (seconds < 3600) return formatted("%lld:%02lld", seconds / 60, seconds % 60);
  if (seconds < 100 * 3600) return clock_text(std::chrono::seconds(seconds));
  const long long days = seconds / 86400;
  return days < 10'000 ? formatted("%lld d", days) : ">9999 d";
}

std::string clock_text(Duration elapsed) {
  const auto seconds = static_cast<long long>(std::chrono::duration_cast<std::chrono::seconds>(elapsed).count());
  return formatted("%lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace shoal
