#pragma once
// What the authority knows of a member, an open round and a stage; see authority/authority.h. Values: the authority
// changes them, nobody else.
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "authority/recent_commits.h"
#include "authority/unreachable_pairs.h"
#include "common/backoff.h"
#include "common/event_loop.h"
#include "events/session_end.h"
#include "transport/messages.h"
#include "transport/token_bucket.h"

namespace shoal {

// Changes of a member's `serving` from no to yes: in the long run, and at once. Each is two records of the log and two
// lists for all. What it does not serve any more is told at once.
inline constexpr double kServingPerSecond = 0.1, kServingAtOnce = 8;

struct MemberState {
  Member member;  // `serving` as the list says: false while it leaves
  StageId stage;
  bool ready = false;  // holds an anchor and takes part in rounds
  bool leaving = false;
  bool leave_asked = false;  // waits for a round, then Goodbye
  RoundId leave_after;       // not that of this round, to which it had contributed: what it stepped since needs another
  bool fetching = false;     // joined a secured stage, has not served yet
  bool serves = false;       // its newest beat says so, at whatever version
  bool flushed = false;      // a committed last round has all that it held
  TimePoint heard_at{};      // its newest beat, or what stands for it
  Duration longest_gap{};    // between two beats, lately
  // As its newest beat said: the device's present job, and the longest finished one of that kind; zero: none.
  Duration job{}, longest_job{};
  Duration longest_any{};  // of all that its beats named
  Version version;         // of its anchor, as far as we know
  bool ahead = false;      // its newest beat showed a version that the log does not know
  // It missed a commit and fetches the state: since when the one that it is at, and which anchor it had then.
  std::optional<TimePoint> behind_since{};
  Version behind_at;
  std::uint64_t settled = 0;        // targets in no committed round, at `version`
  bool beaten = false;              // it sent a beat, so that `held` is known
  std::optional<HeldState> held{};  // as its newest beat said
  double rate = 0;
  bool stranded = false;           // as its newest beat said
  double delay = 0;                // so did this: mean of its gradients lately, in inner steps
  std::uint64_t steps = 0;         // that it made in its session
  std::uint32_t silent_count = 0;  // attempts in a row of its own that named it silent
  std::uint32_t refusals = 0;      // attempts that it answered with `failed` since it last contributed to one
  TokenBucket serving_shown{kServingPerSecond, kServingAtOnce};  // how often the list may say that it serves again
  bool unsteady_said = false;                                    // that it changes too often
  TimePoint commit_sent_at{};
  bool list_sent = false;         // it was given a list on this link, so what changes is told to it
  TimePoint next_list{};          // before it no list that it asks for is sent
  bool newer_list_named = false;  // it says that it has a newer list than ours, and that was said
  // The newest commit that names it, with its own entries only: a later commit alone would not tell it that its
  // contribution is secured.
  std::optional<RoundCommit> named;
};

struct OpenRound {
  RoundOpen open;
  bool sent = false;  // the opening is durable
  TimePoint sent_at{};
  std::optional<TimePoint> stalled_at;  // all who have not decided said that they wait
  std::map<Session, RoundReport> contributed, agreed;
  std::set<Session> failed;
  struct Waiting {
    Session silent;
    TimePoint at{};
  };
  std::map<Session, Waiting> waiting;  // no bytes move there
  struct Blame {
    Session whom;
    bool malformed = false;  // else nothing of it came
  };
  std::map<Session, Blame> blames;  // who failed, and whom it named: both answer us
  std::set<Session> silent;         // named, and not heard by us either
  TimePoint ends_at{};              // whatever moves
  TimerId budget = 0, grace = 0;
};

struct StageState {
  StageId stage;
  Epoch epoch;
  Version version;
  Digest digest;
  bool secured = false;
  RoundId round_used;  // newest id given out
  RoundId round_committed;
  StepId step_done;
  std::optional<OpenRound> round;
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
  // Of peers (Session::peer_tag) that were ready since this authority began, the newest version that they had.
  std::map<std::uint64_t, Version> had;
  std::optional<TimePoint> missing_since;  // nobody holds the newest version
  TimePoint last_commit_at{};
  TimePoint retry_at{}, hold_until{}, hold_allowed_at{};
  Backoff retry_pause{100ms, 5s};  // between attempts that come to nothing
  bool last_wanted = false;        // finish(), and somebody may hold what no last round has
  bool last_made = false;          // one was committed
  TimePoint last_until{};          // last_made: no longer is anybody waited for
  std::size_t last_round_failures = 0;
  double slowest_rate = 0;    // bytes/s of a member in the slowest round that was committed; 0 = none yet
  bool too_few_said = false;  // too few members for the parts of a round
  UnreachablePairs unreachable;
  // Its part of Authority::members_, in the same order: what looks at a stage looks at no other one's members, since
  // every beat does.
  std::map<Session, MemberState*> members;
};

// What was told is told again after a restart for so long at least: others have it in a file by then.
inline constexpr Duration kToldAgain = 10s;
inline constexpr std::size_t kOverAgain = 1024;  // sessions

// Attempts in a row that named a member silent; then the next one goes without it if enough are left.
inline constexpr std::uint32_t kSilentMax = 2;

// Attempts in a row that a member answered with `failed` before it had contributed: then its session ends.
inline constexpr std::uint32_t kRoundRefusalsMax = 8;

}  // namespace shoal
