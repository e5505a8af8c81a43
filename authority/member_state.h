#pragma once
// What the authority knows of a member. Value: MemberBook keeps it, the authority and the rounds of the member's stage
// change it. Thread: loop only.
#include <cstdint>
#include <map>
#include <optional>

#include "common/event_loop.h"
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
  // The newest moment at which it served, left, or had nobody to fetch the state from; at first, when it joined.
  TimePoint idle_since{};
  Duration longest_gap{};  // between two beats, lately
  // As its newest beat said: the device's present job, and the longest finished one of that kind; zero: none.
  Duration job{}, longest_job{};
  Duration longest_any{};  // of all that its beats named
  // What it was seen to need, by our clock: no job of it that ended took longer; and since when the present one may
  // run.
  Duration longest_seen{};
  TimePoint job_from{};
  bool extended = false;      // a job was waited for once more on its word alone
  Version version;            // of its anchor, as far as we know
  bool ahead = false;         // its newest beat showed a version that the log does not know
  bool of_this_life = false;  // this process admitted it, and told it all that it knows of versions and lists
  // It missed a commit, or joined, and fetches the state: since when the one that it is at, and which anchor it had
  // then.
  std::optional<TimePoint> behind_since{};
  Version behind_at;
  std::uint32_t overtaken = 0;         // fetches of a joiner
  std::uint64_t settled = 0;           // targets in no committed round, at `version`
  bool beaten = false;                 // it sent a beat, so that `held` is known
  std::vector<HeldState> held{};       // as its newest beat said: at most limits::kHeldStatesMax
  bool movable = false;                // as its newest beat said
  TimePoint serving_since{};           // as the list says
  Capacity capacity;                   // as its newest beat said; for a planner
  std::optional<DiskState> on_disk{};  // so did this
  bool stranded = false;               // as its newest beat said
  double delay = 0;                    // so did this: mean of its gradients lately, in inner steps
  std::uint64_t steps = 0;             // that it made in its session
  std::uint32_t silent_count = 0;      // attempts in a row of its own that named it silent
  std::uint32_t refusals = 0;          // attempts that it answered with `failed` since it last contributed to one
  std::optional<PeerId> accused;       // it said since the last commit that the parts of this peer cannot be used
  bool contradicted = false;           // it agreed on another weight or tag than was contributed
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

// The members of one stage, in the order of their sessions.
using MembersOfStage = std::map<Session, MemberState*>;

}  // namespace shoal
