#include "runtime/trainer/step_book.h"

#include <algorithm>

namespace shoal {

StepId StepBook::step_of(std::uint64_t serial) const {
  const std::uint64_t step = serial / size();
  return config_.global_step(step) ? StepId(step + 1) : StepId(0);
}

bool StepBook::may_issue(std::uint64_t serial) const {
  const StepId step = step_of(serial);
  if (step.value == 0) return config_.sync.warm_steps == 0 || done_.value >= config_.sync.warm_steps;
  const std::uint64_t behind = config_.sync.mode == SyncMode::kDrain ? 1 : 2;
  return step.value <= done_.value + behind;
}

bool StepBook::is_flush_due() const {
  return config_.sync.mode == SyncMode::kDrain && issued_ >= config_.microbatches_of_windows();
}

void StepBook::issued(std::uint64_t serial) {
  if (step_of(serial).value == 0) ++issued_;
}

std::vector<MicrobatchId> StepBook::microbatches(StepId step, std::uint64_t trainer) const {
  std::vector<MicrobatchId> ids;
  for (std::uint64_t i = 0; i < size(); ++i) ids.push_back({trainer, (step.value - 1) * size() + i});
  return ids;
}

void StepBook::resume(const CommitBook& book, std::uint64_t trainer) {
  for (std::uint64_t serial = book.low(); serial < book.next_serial(); ++serial)
    if (book.find({trainer, serial}) != nullptr) logged(serial);
  // What is below the low-water mark is not in the book any more, and was logged: of the step that the mark stands in,
  // it may be all that was.
  const std::uint64_t below = book.low() % size();
  if (const StepId step = step_of(book.low()); below > 0 && step.value > 0) logged_[step] += below;
  done_ = announced_ = StepId(book.low() / size());
}

void StepBook::logged(std::uint64_t serial) {
  if (const StepId step = step_of(serial); step.value > 0) ++logged_[step];
}

void StepBook::done(StepId step, StageId stage) {
  if (step <= done_) return;
  stages_[step].insert(stage);
  for (auto it = stages_.begin();
       it != stages_.end() && it->first.value == done_.value + 1 && it->second.size() == config_.pipeline.stages;
       it = stages_.erase(it))
    done_ = it->first;
}

std::optional<StepId> StepBook::next_whole() const {
  const auto next = logged_.find(StepId(announced_.value + 1));
  return next != logged_.end() && next->second == size() ? std::optional(next->first) : std::nullopt;
}

void StepBook::announced(StepId step) { announced_ = std::max(announced_, step); }

std::vector<StepId> StepBook::cut_short() const {
  std::vector<StepId> steps;
  for (auto it = logged_.upper_bound(announced_); it != logged_.end(); ++it) steps.push_back(it->first);
  return steps;
}

}  // namespace shoal
