#include "demo/figures.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "events/audit/event_lines.h"
#include "events/event_line.h"
#include "events/session_end.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

constexpr double kRecovered = 0.9;  // of the rate before
constexpr int kRecoveredBins = 3;

double number_at(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : 0.0;
}

void take(const Json& line, DemoEvents& events) {
  const std::string event = event_text(line, "event");
  if (event == "bytes") {
    events.sent_bytes += event_count(line, "sent");
    events.fp32_bytes += event_count(line, "fp32");
    events.payload_bytes += event_count(line, "payload");
    events.deltas += event_count(line, "deltas");
    events.keys += event_count(line, "keys");
  }
  if (event_text(line, "role") != "trainer") return;
  if (event == "commit") {
    events.commits.push_back({number_at(line, "time"), static_cast<std::uint64_t>(number_at(line, "targets"))});
  } else if (event == "train") {
    events.step_losses.push_back(number_at(line, "loss"));
  } else if (event == "validation") {
    events.validation_loss = number_at(line, "loss");
  } else if (event == "lost") {
    const std::string entry = event_text(line, "entry");
    ++events.lost[entry.substr(0, entry.find('#'))];
  } else if (event == "session_over" && is_fault(event_text(line, "cause"))) {
    ++events.faults;
  }
}

}  // namespace

std::uint64_t DemoEvents::tokens() const {
  std::uint64_t sum = 0;
  for (const Commit& commit : commits) sum += commit.targets;
  return sum;
}

void read_demo_text(std::string_view text, DemoEvents& events) {
  std::set<std::string> committed;  // a trainer that came back may write a commit again
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return;  // torn by a kill
    const Json line = Json::parse(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    text.remove_prefix(end + 1);
    if (!line.is_object()) continue;
    if (event_text(line, "event") == "commit" && !committed.insert(event_text(line, "microbatch")).second) continue;
    take(line, events);
  }
  std::stable_sort(events.commits.begin(), events.commits.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
}

Result<DemoEvents> read_demo_events(const std::string& folder) {
  SHOAL_ASSIGN(std::vector<EventFile> files, event_files_in(folder));
  if (files.empty()) return make_error(ErrorCode::kMissing, folder + ": holds no *.jsonl file");
  DemoEvents events;
  std::vector<char> piece(1u << 20);
  for (EventFile& file : files) {
    const AuditSource::Read read = file_source(std::move(file)).open();
    std::string text;
    while (true) {
      SHOAL_ASSIGN(const std::size_t got, read(piece));
      if (got == 0) break;
      text.append(piece.data(), got);
    }
    read_demo_text(text, events);
  }
  return events;
}

std::vector<double> rate_bins(const std::vector<DemoEvents::Commit>& commits, double from, double to) {
  std::vector<double> bins(to > from ? static_cast<std::size_t>(to - from) : 0);
  for (const DemoEvents::Commit& commit : commits) {
    if (commit.at < from) continue;
    const auto bin = static_cast<std::size_t>(commit.at - from);
    if (bin < bins.size()) bins[bin] += static_cast<double>(commit.targets);
  }
  return bins;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Disturbance disturbance_of(double signal, std::optional<double> recovered_s, std::optional<double> back_at,
                           double end) {
  return {signal, recovered_s && back_at ? std::max(signal + *recovered_s, *back_at) : end};
}

double undisturbed_rate(const std::vector<DemoEvents::Commit>& commits, double from, double to,
                        const std::vector<Disturbance>& disturbed) {
  const std::vector<double> bins = rate_bins(commits, from, to);
  std::vector<double> kept;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const double begin = from + static_cast<double>(i);
    if (std::none_of(disturbed.begin(), disturbed.end(),
                     [&](const Disturbance& d) { return d.overlaps(begin, begin + 1); }))
      kept.push_back(bins[i]);
  }
  return median_of(std::move(kept));
}

std::optional<double> recovered_after(const std::vector<DemoEvents::Commit>& commits, double signal, double end,
                                      double before) {
  int in_a_row = 0;
  const std::vector<double> bins = rate_bins(commits, signal, end);
  for (std::size_t i = 0; i < bins.size(); ++i) {
    in_a_row = bins[i] >= kRecovered * before ? in_a_row + 1 : 0;
    if (in_a_row == kRecoveredBins) return static_cast<double>(i + 1 - kRecoveredBins);
  }
  return std::nullopt;
}

std::optional<FaultCost> cost_of(const std::vector<DemoEvents::Commit>& commits, double signal, double end,
                                 double before) {
  const double window = std::min(kCostSeconds, end - signal);
  if (before <= 0 || window < 1) return std::nullopt;
  double targets = 0;
  for (const DemoEvents::Commit& commit : commits)
    if (commit.at >= signal && commit.at < signal + window) targets += static_cast<double>(commit.targets);
  return FaultCost{std::max(0.0, window - targets / before), window};
}

}  // namespace shoal
