#include "runtime/stage_peer/meters.h"

#include <iterator>
#include <ranges>

#include "transport/limits.h"

namespace shoal {

void Meters::computed(double forward_us, double backward_us) {
  constexpr double kNewest = 1.0 / 16;  // share of the newest one in the mean
  const auto note = [](std::optional<double>& mean, double us) { mean = mean ? *mean + kNewest * (us - *mean) : us; };
  note(figures_.forward_us, forward_us);
  note(figures_.backward_us, backward_us);
}

void Meters::refused(std::uint64_t serial, RefusalCause cause) {
  RefusedMicrobatch& one = refused_[serial];
  one = {serial, cause, one.times + 1};
  if (refused_.size() > limits::kRefusedMax) refused_.erase(std::prev(refused_.end()));
}

std::vector<RefusedMicrobatch> Meters::refused(std::uint64_t low) {
  refused_.erase(refused_.begin(), refused_.lower_bound(low));
  const auto all = std::views::values(refused_);
  return {all.begin(), all.end()};
}

void Meters::encoded(std::size_t bytes) {
  if (bytes == 0) return;
  figures_.payload_bytes += bytes;
  figures_.fp32_bytes += activation_bytes_;
}

// A step in which this replica has no part says nothing of the delay.
void Meters::stepped(const DelayHistogram& delays) {
  ++figures_.inner_steps;
  if (delays.total() == 0) return;
  delays_.push_back(delays);
  if (delays_.size() > kDelayWindows) delays_.pop_front();
  DelayHistogram recent;
  for (const DelayHistogram& window : delays_) recent.merge(window);
  figures_.delay = recent.mean();
}

void Meters::measure(const LedgerCounters& entries, TimePoint now) {
  rate_.note(static_cast<double>(entries.counted * targets_), now);
  figures_.rate = rate_.per_second();
}

PeerFigures Meters::figures(const LedgerCounters& entries) const {
  PeerFigures figures = figures_;
  figures.accepted = entries.accepted;
  figures.accepted_targets = entries.accepted * targets_;
  figures.counted = entries.counted;
  figures.undone = entries.undone;
  figures.recomputed = entries.recomputed;
  return figures;
}

}  // namespace shoal
