#pragma once
// How long the rounds of a stage, and a fetch of its state, may take: by its bytes at the slowest rate that a round
// had, and by the jobs of its members' devices.
//
// Thread: loop only.   Borrows: options, book, detector.
#include <cstdint>

#include "authority/authority_port.h"
#include "authority/failure_detector.h"
#include "authority/member_book.h"

namespace shoal {

class RoundTimes {
 public:
  RoundTimes(StageId stage, const AuthorityOptions& options, const MemberBook& book, const FailureDetector& detector)
      : stage_(stage), options_(options), book_(book), detector_(detector) {}

  std::uint64_t payload() const;  // bytes of what a member brings; 0: not known
  Duration budget(std::size_t members) const { return of_bytes(members) + of_jobs(); }
  // In which everybody must have contributed, of a round with this budget.
  Duration to_contribute(Duration budget) const;
  // In which a member that fetches the state must have it: after that nothing waits for it.
  Duration to_fetch() const { return of_bytes(2) + of_jobs() + options_.membership; }
  // In which a member must serve that can fetch the state: after that it keeps a place that it never fills.
  Duration to_serve() const;
  // A round was committed that took so long.
  void note_round(std::size_t members, Duration took);

 private:
  Duration of_bytes(std::size_t members) const;
  // What a round's members may need until their devices are free for it: it takes its turns between their jobs.
  Duration of_jobs() const;

  const StageId stage_;
  const AuthorityOptions& options_;
  const MemberBook& book_;
  const FailureDetector& detector_;
  double slowest_rate_ = 0;  // bytes/s of a member in the slowest committed round; 0 = none yet
};

}  // namespace shoal
