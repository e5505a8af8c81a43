#pragma once
// Which members live, by their beats, their links and what they say of their devices; and how long members need to
// begin to serve.
//
// Thread: loop only.   Borrows: options, loop, book.   Bounds: a link a peer.
//
// clang-format off
// A member is fenced when one of these is over. No such time passes while this process slept or waits for its log.
//   silence       `membership`, or twice the longest gap between two of its beats lately
//   a hung device job_patience() of its device's present job (authority/patience.h)
// clang-format on
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "authority/authority_port.h"
#include "authority/member_book.h"
#include "common/event_loop.h"
#include "transport/links.h"

namespace shoal {

class FailureDetector {
 public:
  static constexpr Duration kSlept = 1s;  // between two ticks: we slept, and nobody was silent meanwhile
  static constexpr Duration kLeaves = 5s, kStartUnknown = 30s;

  FailureDetector(const AuthorityOptions& options, EventLoop& loop, MemberBook& book)
      : options_(options), loop_(loop), book_(book) {}

  void on_link_up(const Remote& from);
  void on_link_down(const Remote& from);
  std::set<PeerId> reachable() const;                         // members, and all whose link is up
  void on_beat(MemberState& member, const Beat& beat) const;  // what it says of itself and not of its stage
  Duration ticked();                                          // since when it was called before
  void all_heard();                                           // now
  void forgive(Duration silence);                             // of every member: it was ours
  bool beats(const MemberState& member) const;
  // What is believed of a job's length that it claims: what it was seen to need, or what the stage's other members
  // claim (their lower median), or the least patience. Its word alone is worth no more.
  Duration believed(const MemberState& member, Duration claimed) const;
  // It would not hear of a round that opens now: its link is down, or it is silent.
  bool away(const MemberState& member) const;
  // It began to serve, so long after it could.
  void note_start(Duration took) {
    longest_start_ = std::max(longest_start_, took);
    usual_start_ = usual_start_ > Duration(0) ? usual_start_ + (took - usual_start_) / 4 : took;
  }
  // From a member's last microbatch at one stage to its first one at another, by what members of this run needed lately
  // to begin; kStartUnknown while none is known.
  Duration move_time() const { return usual_start_ > Duration(0) ? kLeaves + usual_start_ : kStartUnknown; }
  // What a member may need for that: four times what any of the run needed, or a first job's time while none began.
  Duration start_patience() const;
  // Whether it serves, or may well be on its way there: it is not longer about it than start_patience().
  bool makes_progress(const MemberState& member) const;
  std::map<Session, std::string> dead() const;  // the members to be fenced, and why
  std::vector<MemberLife> lives() const;        // in the order of their sessions

 private:
  Duration silence_patience(const MemberState& member) const;
  Duration patience_with_job(const MemberState& member) const;
  std::string dead_because(const MemberState& member, TimePoint now) const;  // empty: it lives

  const AuthorityOptions& options_;
  EventLoop& loop_;
  MemberBook& book_;
  std::map<PeerId, Session> linked_;  // peers whose link is up
  TimePoint last_tick_{};
  Duration longest_start_{0}, usual_start_{0};
};

}  // namespace shoal
