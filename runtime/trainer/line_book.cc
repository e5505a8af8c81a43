#include "runtime/trainer/line_book.h"

#include <algorithm>

namespace shoal {

void LineBook::begin(std::uint64_t committed, std::uint64_t committed_targets, TimePoint now) {
  started_at_ = line_since_ = now;
  rate_.note(static_cast<double>(committed_targets), now);
  for (; committed >= config_.microbatches_of_step(lines_); ++lines_) committed -= config_.microbatches_of_step(lines_);
}

std::optional<TrainLine> LineBook::count(const Gradient& gradient, std::uint64_t committed_targets, TimePoint now) {
  loss_sum_ += gradient.loss_sum;
  targets_ += gradient.targets;
  if (++microbatches_ < config_.microbatches_of_step(lines_)) return std::nullopt;
  TrainLine line;
  line.step = ++lines_;
  line.loss = loss_sum_ / static_cast<double>(targets_);
  line.tokens_per_s = static_cast<double>(targets_) / std::max(1e-9, seconds_of(now - line_since_));
  line.tokens = committed_targets;
  line.elapsed = now - started_at_;
  note_end(line, now);
  line_since_ = now;
  loss_sum_ = 0;
  targets_ = microbatches_ = 0;
  return line;
}

// Where the line stands in the run, and the schedule's rate there.
void LineBook::note_end(TrainLine& line, TimePoint now) {
  line.lr = config_.inner_step(line.step, config_.targets_per_microbatch(), line.tokens, config_.gradients_late()).lr;
  rate_.note(static_cast<double>(line.tokens), now);
  line.end_tokens = config_.end_targets();
  if (line.end_tokens == 0) return;
  const std::uint64_t left = line.end_tokens > line.tokens ? line.end_tokens - line.tokens : 0;
  const std::uint64_t of_step = config_.microbatches_of_step(line.step) * config_.targets_per_microbatch();
  line.steps = line.step + (left + of_step - 1) / of_step;
  line.left = rate_.time_for(static_cast<double>(left));
}

}  // namespace shoal
