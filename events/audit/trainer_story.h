#pragma once
// What the trainer wrote of microbatches: issued, committed, marked merged, lost (docs/EVENTS.md, rules 1, 3, 7).
#include "events/audit/audit_books.h"

namespace shoal {

class TrainerStory {
 public:
  TrainerStory(Books& books, Findings& findings) : books_(books), findings_(findings) {}

  void begin_life();
  void take(const ReadEvent& event);
  void finish();  // all files of the trainer are read

 private:
  void take_issue(const ReadEvent& e);
  void take_commit(const ReadEvent& e);
  void take_path(const ReadEvent& e);
  void take_merged(const ReadEvent& e);
  void take_lost(const ReadEvent& e);
  void take_validation(const ReadEvent& e);
  void take_train(const ReadEvent& e);

  Books& books_;
  Findings& findings_;
  std::size_t stages_ = 0;
  std::uint64_t targets_ = 0;  // of all commits
  double line_loss_ = 0;       // of the commits since the last train line
  std::uint64_t line_targets_ = 0;
  std::uint64_t last_step_ = 0;  // of the last train line of this life
  std::uint16_t validation_life_ = 0;
  bool end_cause_seen_ = false;
};

}  // namespace shoal
