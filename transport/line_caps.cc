#include "transport/line_caps.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

namespace shoal {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 3> kRateUnits = {
    {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}}};
constexpr double kLineCapMax = 1e12 / 8;  // what is more was meant otherwise

Error no_rate(std::string_view option, const std::string& text, const std::string& cause, const std::string& remedy) {
  return make_error(ErrorCode::kInput, std::string(option) + " " + text + ": " + cause + ". HINT: " + remedy);
}

}  // namespace

Result<double> parse_line_cap(std::string_view option, const std::string& text) {
  const std::string form = "a number and kbit, mbit or gbit, as in 20mbit; a megabyte a second is 8mbit";
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (failure != std::errc() || !std::isfinite(number)) return no_rate(option, text, "it begins with no number", form);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  if (unit.ends_with("/s")) unit.remove_suffix(2);
  std::string small(unit);
  for (char& letter : small) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto found =
      std::find_if(kRateUnits.begin(), kRateUnits.end(), [&](const auto& known) { return known.first == small; });
  if (found == kRateUnits.end())
    return no_rate(option, text, unit.empty() ? "it has no unit" : "no unit is called '" + std::string(unit) + "'",
                   form);
  const double rate = number * found->second / 8;
  if (!(rate >= kLineCapMin))
    return no_rate(option, text, "too little for a peer, whose messages without tensors take some of it",
                   "256kbit or more, or no " + std::string(option) + " for no cap");
  if (rate > kLineCapMax) return no_rate(option, text, "more than any line has", "1000gbit or less");
  return rate;
}

Result<LineCaps> line_caps_of(const std::string& up, const std::string& down) {
  LineCaps caps;
  if (!up.empty()) {
    SHOAL_ASSIGN(caps.up, parse_line_cap("--up", up));
  }
  if (!down.empty()) {
    SHOAL_ASSIGN(caps.down, parse_line_cap("--down", down));
  }
  return caps;
}

}  // namespace shoal
