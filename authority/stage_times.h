#pragma once
// The times of one stage: how long its rounds, and a fetch of its state, may take, by its bytes at the slowest rate
// that a round had and by the jobs of its members' devices; and its members on their way to it, by their beats. Rounds
// wait a while for those that fetch its state, so that they are not overtaken; one that neither fetches nor serves for
// too long keeps no place.
//
// Thread: loop only.   Borrows: options, loop, book, detector.
#include <cstdint>
#include <vector>

#include "authority/authority_port.h"
#include "authority/failure_detector.h"
#include "authority/member_book.h"
#include "authority/stage_line.h"
#include "common/event_loop.h"

namespace shoal {

class StageTimes {
 public:
  StageTimes(StageId stage, const AuthorityOptions& options, const EventLoop& loop, const MemberBook& book,
             FailureDetector& detector)
      : stage_(stage), options_(options), loop_(loop), book_(book), detector_(detector) {}

  // ---- how long things may take ----
  std::uint64_t payload() const;  // bytes of what a member brings; 0: not known
  Duration budget(std::size_t members, std::size_t owners) const { return of_bytes(members, owners) + of_jobs(); }
  // In which everybody must have contributed, of a round with this budget.
  Duration to_contribute(Duration budget) const;
  // In which a member that fetches the state must have it: after that nothing waits for it.
  Duration to_fetch() const { return of_bytes(2, 2) + of_jobs() + options_.membership; }
  // In which a member must serve that can fetch the state: after that it keeps a place that it never fills.
  Duration to_serve() const;
  // A round was committed that took so long.
  void note_round(std::size_t members, std::size_t owners, Duration took);

  // ---- members on their way ----
  // `in_round`: the stage has an open round.
  void on_joiner(bool in_round) { (void)hold(options_.join_hold, join_allowed_at_, in_round); }
  void on_beat(MemberState& member, const Beat& beat, StageLine& line, bool in_round);  // what it says of the stage
  void on_round_over();
  bool hold_rounds() const { return loop_.now() < hold_until_; }  // while a member fetches
  // Sessions that neither fetched the state nor served for `patience`. `over`: the run is, and nobody is one.
  std::vector<Session> squatters(const StageLine& line, Duration patience, bool over) const;

 private:
  Duration of_bytes(std::size_t members, std::size_t owners) const;
  // What a round's members may need until their devices are free for it: it takes its turns between their jobs.
  Duration of_jobs() const;
  void note_fetch(MemberState& member, const Beat& beat, Version newest, bool in_round);
  // No new round for so long; not before `allowed_at`, which it moves on.
  bool hold(Duration time, TimePoint& allowed_at, bool in_round);

  const StageId stage_;
  const AuthorityOptions& options_;
  const EventLoop& loop_;
  const MemberBook& book_;
  FailureDetector& detector_;
  double slowest_rate_ = 0;  // bytes/s of a member in the slowest committed round; 0 = none yet
  TimePoint hold_until_{}, join_allowed_at_{}, fetch_allowed_at_{};
  Duration hold_for_{};  // from the end of the round that was open when it began; zero: that is over
};

}  // namespace shoal
