#pragma once
// What the authority knows of a member: its phase (authority/member_phase.h) and figures, each kind a struct of its
// own. Value: MemberBook keeps it, the authority and the rounds of the member's stage change it. Thread: loop only.
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "authority/member_phase.h"
#include "common/check.h"
#include "common/event_loop.h"
#include "transport/messages.h"
#include "transport/token_bucket.h"

namespace shoal {

// Changes of a member's `serving` from no to yes: in the long run, and at once. Each is two records of the log and two
// lists for all. What it does not serve any more is told at once.
inline constexpr double kServingPerSecond = 0.1, kServingAtOnce = 8;

// When it was heard.
struct MemberBeats {
  TimePoint heard_at{};    // its newest beat, or what stands for it
  Duration longest_gap{};  // between two beats, lately
  bool came = false;       // one did, so that what it says of itself is known
};

// How long jobs of its device take: believed as far as MemberBook::believed says.
struct MemberJobs {
  // As its newest beat said: the device's present job, and the longest finished one of that kind; zero: none.
  Duration present{}, longest{};
  Duration longest_any{};    // of all that its beats named
  Duration longest_seen{};   // longest job that we saw it finish, by our clock
  TimePoint present_from{};  // when its present job began, by our clock
  bool extended = false;     // a job was waited for once more on its word alone
};

// It missed a commit, or joined, and fetches the state.
struct MemberFetch {
  std::optional<TimePoint> since{};  // it is at the present one
  Version from;                      // of the anchor that it had then
  std::uint32_t overtaken = 0;       // fetches of a joiner
  // The newest moment at which it served, left, or had nobody to fetch the state from; at first, when it joined.
  TimePoint idle_since{};
};

// What rounds and their attempts say against it.
struct MemberBlame {
  std::uint32_t silent_count = 0;   // attempts in a row of its own that named it silent
  std::uint32_t refusals = 0;       // attempts that it answered with `failed` since it last contributed to one
  std::optional<PeerId> accused{};  // it said since the last commit that the parts of this peer cannot be used
  bool contradicted = false;        // it agreed on another weight or tag than was contributed
};

// How its `serving` changes on the list.
struct ServingShown {
  TokenBucket changes{kServingPerSecond, kServingAtOnce};  // how often the list may say that it serves again
  bool unsteady_said = false;                              // that it changes too often
  TimePoint since{};                                       // when the list began to say so
};

// Which lists it was given.
struct ListsGiven {
  bool on_link = false;         // one on this link, so what changes is told to it
  TimePoint next{};             // before it no list that it asks for is sent
  bool newer_one_said = false;  // it says that it has a newer list than ours, and that was said
};

enum class Leaving : std::uint8_t {
  kNo,
  kSaid,   // its beats say so, or it has to ask again
  kAsked,  // waits for a round, then Goodbye
};

struct MemberState {
  Member member;  // `serving` as the list says: false while it leaves
  StageId stage;
  bool of_this_life = false;  // this process admitted it, and told it all that it knows of versions and lists
  Version version;            // of its anchor, as far as we know
  Leaving leaving = Leaving::kNo;
  RoundId leave_after;  // not that of this round, to which it had contributed: what it stepped since needs another
  std::uint64_t settled = 0;  // targets in no committed round, at `version`
  bool flushed = false;       // a committed last round has all that it held
  TimePoint commit_sent_at{};
  // The newest commit that names it, with its own entries only: a later commit alone would not tell it that its
  // contribution is secured.
  std::optional<RoundCommit> named;

  MemberBeats beats;
  MemberJobs jobs;
  Beat said;  // its newest; `held`: none while it serves, else at most limits::kHeldStatesMax; `refused`: as limits say
  MemberFetch fetch;
  MemberBlame blame;
  ServingShown shown;
  ListsGiven lists;
  TokenBucket knocks{kKnocksPerSecond, kKnocksPerSecond};

  MemberPhase phase() const { return phase_; }
  void enter(MemberPhase next) {
    SHOAL_CHECK(may_follow(phase_, next));
    phase_ = next;
  }
  bool ready() const { return phase_ == MemberPhase::kReady; }
  bool ahead() const { return phase_ == MemberPhase::kAhead; }
  bool to_fetch() const { return phase_ == MemberPhase::kFetching || phase_ == MemberPhase::kOvertaken; }
  // Its newest beat says that it serves, at whatever version.
  bool serves() const {
    return ready() || ahead() || phase_ == MemberPhase::kOvertaken || phase_ == MemberPhase::kOutdated;
  }
  bool leaves() const { return leaving != Leaving::kNo; }

 private:
  MemberPhase phase_ = MemberPhase::kNew;
};

// The members of one stage, in the order of their sessions.
using MembersOfStage = std::map<Session, MemberState*>;

}  // namespace shoal
