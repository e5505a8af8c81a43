#pragma once
// How long the jobs of a device took, without what they starved (WorkQueue::starved), kind by kind: what tells one that
// is slow from one that hangs (authority/patience.h). Pure. Thread: one at a time.
#include <algorithm>
#include <array>

#include "common/time.h"
#include "common/work_queue.h"

namespace shoal {

class JobTimes {
 public:
  // Texts teach nothing: one has a place, the next five hundred behind ten thousand others, as its reader likes.
  void note(WorkKind task, Duration took) {
    if (task == WorkKind::kText) return;
    if (is_of_rounds(task)) of_rounds_ += took;
    Duration& longest = longest_[static_cast<std::size_t>(task)];
    longest = std::max({longest, took, Duration(1)});  // what took no time is measured too
  }
  // The longest of its kind. While none of them is finished: of any kind, where a heavier one came before it; else 0,
  // nothing is known.
  Duration longest(WorkKind task) const {
    const Duration own = longest_[static_cast<std::size_t>(task)];
    return own == Duration::zero() && follows_a_heavier(task) ? longest_of_any() : own;
  }
  Duration of_rounds() const { return of_rounds_; }  // all of them together, the shift behind a round too
  Duration longest_of_any() const { return *std::max_element(longest_.begin(), longest_.end()); }

 private:
  static constexpr bool is_of_rounds(WorkKind task) {
    return task == WorkKind::kSnapshot || task == WorkKind::kCommit || task == WorkKind::kAbandon ||
           task == WorkKind::kShift;
  }
  // What takes back or hands over what another job made.
  static constexpr bool follows_a_heavier(WorkKind task) {
    return task == WorkKind::kUndo || task == WorkKind::kShift || task == WorkKind::kRelease ||
           task == WorkKind::kCommit || task == WorkKind::kAbandon || task == WorkKind::kDrop;
  }
  std::array<Duration, kWorkKinds> longest_{};
  Duration of_rounds_{};
};

}  // namespace shoal
