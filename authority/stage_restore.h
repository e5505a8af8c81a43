#pragma once
// What a stage has by now, brought back. To a member what it should have of the stage's rounds is told again, since
// messages are not reliable: at most once a second, to the members of a large round less often. And a stage goes back
// when nobody has held its newest version for long enough, and a member has an earlier one (docs/ROUNDS.md, "A stage
// that goes back").
//
// Thread: loop only.   Borrows: all that it is made with.
#include <optional>

#include "authority/authority_port.h"
#include "authority/decision_log.h"
#include "authority/member_book.h"
#include "authority/open_round.h"
#include "authority/stage_line.h"
#include "common/event_loop.h"

namespace shoal {

class StageRestore {
 public:
  StageRestore(const AuthorityOptions& options, AuthorityPort& port, const EventLoop& loop, DecisionLog& log,
               MemberBook& book, StageLine& line)
      : options_(options), port_(port), loop_(loop), log_(log), book_(book), line_(line) {}

  // In front of a commit that does not name it: the last one that does.
  void send_commit(const MemberState& member, const RoundCommit& commit) const;
  // `round`: the open one.
  void on_link_up(MemberState& member, std::optional<OpenRound>& round) const;
  void repeat(MemberState& member, std::optional<OpenRound>& round) const;

  // Each tick. `may`: no round is open, and the run goes on. True: it went back.
  bool look(bool may);
  // Nobody has held the newest version for so long; none: somebody does.
  std::optional<Duration> missing_for() const {
    return missing_since_ ? std::optional<Duration>(loop_.now() - *missing_since_) : std::nullopt;
  }

 private:
  void go_back_to(Version version);

  const AuthorityOptions& options_;
  AuthorityPort& port_;
  const EventLoop& loop_;
  DecisionLog& log_;
  MemberBook& book_;
  StageLine& line_;
  std::optional<TimePoint> missing_since_;
};

// Tells of a commit that goes back.
void say_restored(AuthorityPort& port, const RoundCommit& commit, const RecentCommits::TakenBack& taken);

}  // namespace shoal
