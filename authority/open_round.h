#pragma once
// The open round of a stage at the authority: what each of its members said, and whether that makes a commit. Value
// without I/O and clock; StageRounds keeps it and acts on it. Thread: loop only. Bounds: a RoundMember a member.
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/event_loop.h"
#include "events/event_record.h"
#include "transport/messages.h"

namespace shoal {

struct RoundMember {
  std::optional<RoundReport> contributed, agreed;
  TimePoint agreed_at{};
  bool failed = false;
  bool silent = false;  // named, and not heard by us either; or it brought nothing in time
  struct Waiting {
    Session silent;
    TimePoint at{};
  };
  std::optional<Waiting> waiting;  // no bytes move there
  struct Blame {
    Session whom;
    bool malformed = false;  // else nothing of it came
  };
  std::optional<Blame> blame;  // it failed and named that member: both answer us
  bool lacks_piece = false;    // its newest word: it waits for a piece of its own part, and makes no sum before

  void agree(const RoundReport& report, TimePoint now) {  // its first word counts
    if (agreed) return;
    agreed = report;
    agreed_at = now;
  }
  bool decided() const { return agreed || failed; }
};

struct OpenRound {
  // `step`: allreduce, the one that the round makes; null: none.
  OpenRound(RoundOpen opening, const Step* step);

  RoundMember* find(const Session& session);
  bool has_contribution(const Session& session) const;
  bool owns(const Session& session) const;  // a part
  bool all_contributed() const;
  bool refused() const;  // a member failed that had not contributed: no commit could name what it brought
  // The digest that most members agree on, and with how many. An agreement whose weight or tag is not what all
  // contributions have together is no vote. REQUIRES: all contributed.
  std::pair<Digest, std::size_t> best_vote() const;
  std::optional<Digest> majority() const;  // that more than half of the members agree on
  std::size_t undecided() const;
  bool agrees_on(const Session& session, const Digest& digest) const;
  bool doubtful() const;  // some member agreed on another weight or tag than was contributed
  // Members whose agreement contradicts what was contributed: more than half of the members say otherwise, or all have
  // decided and somebody's sum is that of the contributions. Else nobody knows which of them it is, and it has none.
  std::vector<Session> contradicting() const;
  // A member says that nothing moves: whether that is so at all that have not decided. Each must say it twice, since a
  // word of a moment ago may have been followed by bytes.
  bool stalled(TimePoint now);
  RoundCommit commit_of(const Digest& digest) const;  // of what was contributed
  // None: fewer than two members agree.
  std::optional<LastToAgree> last_to_agree(const Digest& digest) const;

  RoundOpen open;
  std::optional<Step> step;
  bool sent = false;  // the opening is durable
  TimePoint sent_at{};
  TimePoint ends_at{};  // whatever moves
  std::map<Session, RoundMember> members;
  std::optional<TimePoint> stalled_at;  // all that have not decided said that they wait
  TimerId budget = 0, grace = 0;

 private:
  using Sum = std::pair<std::uint64_t, CountTag>;  // weight and tag
  static Sum sum_of(const RoundReport& report) { return {report.weight, report.tag}; }
  Sum contributed_sum() const;
};

}  // namespace shoal
