#include "events/train_line.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/formatted.h"
#include "events/line_parts.h"

namespace shoal {
namespace {

constexpr std::size_t kPeersColumns = 16;

// "peers 2 2 1 2"; of many stages "peers 1-12 in 64".
std::string peers_text(const std::vector<std::uint32_t>& peers) {
  if (peers.empty()) return "";
  std::string text = "peers";
  for (const std::uint32_t count : peers) {
    text += " " + short_number(std::uint64_t{count});
    if (text.size() <= kPeersColumns) continue;
    const auto [fewest, most] = std::ranges::minmax(peers);
    return "peers " + short_number(std::uint64_t{fewest}) + "-" + short_number(std::uint64_t{most}) + " in " +
           std::to_string(peers.size());
  }
  return text;
}

std::string rate_text(double lr) {
  std::string short_text = formatted("lr %.1e", lr);
  const std::size_t zero = short_text.find("e-0");  // of the exponent
  return zero == std::string::npos ? short_text : short_text.erase(zero + 2, 1);
}

}  // namespace

std::string delay_text(double delay) { return formatted("delay %.1f", delay); }

std::string text_of(const TrainLine& line, std::size_t columns) {
  const bool ends = line.end_tokens > 0;
  const std::string step =
      line.steps > 0 ? short_number(line.step) + "/" + short_number(line.steps) : "step " + short_number(line.step);
  const std::string done = ends ? percent_text(line.tokens, line.end_tokens) : short_number(line.tokens) + " tok";
  const std::string time = line.parked                                  ? "parked " + span_text(*line.parked)
                           : !ends                                      ? clock_text(line.elapsed)
                           : line.left && line.tokens < line.end_tokens ? span_text(*line.left) + " left"
                                                                        : "";
  return fitted({{step, 0},
                 {done, 0},
                 {time, line.parked ? 0 : 2},
                 {"loss " + loss_text(line.loss), 0},
                 {line.validation ? "val " + loss_text(*line.validation) : "", 0},
                 {rate_text(line.lr), 4},
                 {line.parked ? "" : short_number(line.tokens_per_s) + " tok/s", 1},
                 {line.parked ? "" : peers_text(line.peers), 3},
                 {line.disk_age ? "disk " + span_text(*line.disk_age) + " old" : "", 1},
                 {line.relay ? "relay " + std::to_string(std::lround(100 * *line.relay)) + "%" : "", 1},
                 {line.faults && *line.faults > 0 ? "faults " + short_number(*line.faults) : "", 0}},
                columns);
}

double LossCurve::first() const { return losses_.empty() ? 0 : losses_.front(); }

double LossCurve::last() const {
  if (losses_.empty()) return 0;
  const std::size_t count = std::clamp<std::size_t>(losses_.size() / 10, 1, 20);
  return std::accumulate(losses_.end() - static_cast<std::ptrdiff_t>(count), losses_.end(), 0.0) /
         static_cast<double>(count);
}

}  // namespace shoal
