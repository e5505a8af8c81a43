#pragma once
// Train lines: one for each step's worth of committed microbatches, whatever their order. Value without I/O.
// Thread: loop only.   Bounds: those of metrics/recent_rate.h.
#include <cstdint>
#include <optional>

#include "events/train_line.h"
#include "metrics/recent_rate.h"
#include "runtime/config/config.h"
#include "transport/messages_hop.h"

namespace shoal {

class LineBook {
 public:
  // REQUIRES: config outlives it.
  explicit LineBook(const RunConfig& config) : config_(config) {}

  // Lines go on being counted where an earlier life of the trainer was.
  void begin(std::uint64_t committed, std::uint64_t committed_targets, TimePoint now);
  // One more is committed. The line that it makes whole, without peers and validation.
  std::optional<TrainLine> count(const Gradient& gradient, std::uint64_t committed_targets, TimePoint now);

 private:
  void note_end(TrainLine& line, TimePoint now);

  const RunConfig& config_;
  TimePoint started_at_{}, line_since_{};
  RecentRate rate_{kTimeLeftWindow};  // of committed targets
  double loss_sum_ = 0;               // of the line that is being counted, as targets_ and microbatches_
  std::uint64_t targets_ = 0, microbatches_ = 0, lines_ = 0;
};

}  // namespace shoal
