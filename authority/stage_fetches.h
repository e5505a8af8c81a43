#pragma once
// The members of a stage on their way to it, by their beats. Rounds wait a while for those that fetch its state, so
// that they are not overtaken; one that neither fetches nor serves for too long keeps no place.
//
// Thread: loop only.   Borrows: options, loop, detector, times.
#include <vector>

#include "authority/failure_detector.h"
#include "authority/round_times.h"
#include "authority/stage_line.h"
#include "common/event_loop.h"

namespace shoal {

class StageFetches {
 public:
  StageFetches(const AuthorityOptions& options, const EventLoop& loop, FailureDetector& detector,
               const RoundTimes& times)
      : options_(options), loop_(loop), detector_(detector), times_(times) {}

  // `in_round`: the stage has an open round.
  void on_joiner(bool in_round) { (void)hold(options_.join_hold, join_allowed_at_, in_round); }
  void on_beat(MemberState& member, const Beat& beat, StageLine& line, bool in_round);  // what it says of the stage
  void on_round_over();
  bool hold_rounds() const { return loop_.now() < hold_until_; }  // while a member fetches
  // Sessions that neither fetched the state nor served for `patience`. `over`: the run is, and nobody is one.
  std::vector<Session> squatters(const StageLine& line, const MembersOfStage& members, Duration patience,
                                 bool over) const;

 private:
  void note_fetch(MemberState& member, const Beat& beat, Version newest, bool in_round);
  // No new round for so long; not before `allowed_at`, which it moves on.
  bool hold(Duration time, TimePoint& allowed_at, bool in_round);

  const AuthorityOptions& options_;
  const EventLoop& loop_;
  FailureDetector& detector_;
  const RoundTimes& times_;
  TimePoint hold_until_{}, join_allowed_at_{}, fetch_allowed_at_{};
  Duration hold_for_{};  // from the end of the round that was open when it began; zero: that is over
};

}  // namespace shoal
