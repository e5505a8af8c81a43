#include "demo/figures.h"

#include <algorithm>
#include <sstream>

#include "events/books/merged_lines.h"
#include "events/session_end.h"

namespace shoal {
namespace {

constexpr double kRecovered = 0.9;  // of the rate before
constexpr int kRecoveredBins = 3;

std::string text_of(const Session& session) {
  std::ostringstream text;
  text << session;
  return std::move(text).str();
}

}  // namespace

Result<DemoEvents> read_demo_events(const std::string& folder) {
  SHOAL_ASSIGN(MergedLines lines, MergedLines::whole(folder));
  DemoEvents events;
  while (true) {
    SHOAL_ASSIGN(const std::optional<SeenEvent> event, lines.next());
    if (!event) return events;
    const EventRecord& r = event->record;
    const std::uint64_t before = events.tokens();
    events.run.take(*event);
    if (events.tokens() > before) events.commits.push_back({event->time, events.tokens() - before});
    if (!event->of_trainer) continue;
    if (r.event == EventKind::kTrain && r.loss) events.step_losses.push_back(*r.loss);
    if (r.event == EventKind::kSessionOver && is_fault(r.cause)) ++events.faults;
    if (r.event == EventKind::kLost && r.entry_name) ++events.lost[text_of(r.entry_name->session)];
  }
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
