#pragma once
// What the authority's log says of a stage: its versions, the ids of its rounds, what it may go back to, and what a
// restarted process tells again (docs/ROUNDS.md, "A stage that goes back"). Value: the stage's rounds and the replay of
// the log change it. Thread: loop only. Bounds: those of RecentCommits; kHadMax peers; commits that are told again:
// those of kToldAgain, or until the trainer's log has them.
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "authority/authority_log.h"
#include "authority/authority_port.h"
#include "authority/member_state.h"
#include "authority/recent_commits.h"
#include "common/time.h"
#include "transport/limits.h"
#include "transport/messages.h"

namespace shoal {

// What was told is told again after a restart for so long at least: others have it in a file by then.
inline constexpr Duration kToldAgain = 10s;

// A range of a stage's parameters, by their place in its arrays, on whose anchor the replicas agree together: a round
// opens on one fragment and lands there. A line has one today, which is all of them.
struct LineFragment {
  std::uint64_t begin = 0, end = UINT64_MAX;
  Version version{};
  Digest digest{};
  RoundId round{};  // that made the version
};

struct StageLine {
  static constexpr std::size_t kHadMax = 4 * limits::kReplicasMax;  // peers whose version is kept in mind

  // The newest version from now on is that of `commit`. `taken`: where it goes back. `settled`: up to which version the
  // trainer's log durably says what was secured. REQUIRES: it follows the newest.
  void push(const RoundCommit& commit, const RecentCommits::TakenBack& taken, Version settled, TimePoint now);
  void note_had(const MemberState& member);

  Version version() const { return fragments.front().version; }
  const Digest& digest() const { return fragments.front().digest; }
  RoundId round_committed() const { return fragments.front().round; }

  bool has_newest(const MemberState& member) const { return member.ready() && member.version == version(); }
  // A member holds the newest version and serves; `but`: not this one.
  bool held(const MembersOfStage& members, const std::optional<Session>& but = {}) const;
  // Nobody serves the newest version, and no member says or shows that it has it.
  bool missing(const MembersOfStage& members) const;
  // The newest version of those that members hold and that the stage may go back to.
  std::optional<Version> restorable(const MembersOfStage& members) const;
  // Whether it is worth waiting for somebody who may have the newest version and is not here.
  bool one_may_come(const MembersOfStage& members) const;
  // `missing_for`: nobody has held the newest version for so long; none: somebody does. `restore_after`: it goes back
  // then.
  StageStatus status(const MembersOfStage& members, std::optional<Duration> missing_for, Duration restore_after) const;
  StageMembers head() const;  // as the list shows it, without its members

  // What it takes back. ERRORS: kCorrupt (the log contradicts itself).
  Result<RecentCommits::TakenBack> replay(const LogCommit& record, Version settled, TimePoint now);
  Status replay(const LogStage& record);  // ERRORS: as above
  Status replay(const LogOpen& record);   // ERRORS: as above
  void replay(const LogAgain& record, TimePoint now);
  void compact(const MembersOfStage& members, std::vector<LogRecord>& records) const;

  StageId stage;
  Epoch epoch;
  std::vector<LineFragment> fragments{1};  // in the order of their ranges
  bool secured = false;
  RoundId round_used;                 // newest id given out
  std::uint32_t fragment_opened = 0;  // by the round of that id: it lands there
  StepId step_done;
  std::optional<RoundCommit> last_commit;       // decided
  std::optional<RoundCommit> last_commit_sent;  // durable
  std::optional<RoundAbandon> last_abandon;
  RecentCommits recent;  // what it may go back to
  // Commits that a restarted process has to tell again; of one that goes back, `secured` and `tag` are what that takes.
  struct Told {
    RoundCommit commit;
    TimePoint at{};
  };
  std::deque<Told> told;
  // The newest version of each peer (Session::peer_tag) that was ready since this authority began.
  std::map<std::uint64_t, Version> had;

 private:
  // Its peer was there with that version or a later one: else its word that it has it is worth nothing.
  bool may_have(const Session& session, Version of) const;
  // The commit makes the newest version of the fragment that its round opened, or of all where it goes back.
  void land(const RoundCommit& commit);
};

}  // namespace shoal
