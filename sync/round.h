#pragma once
// A member's side of a round: contribute, reduce among the members, prepare, report the digest, commit or abandon on
// the authority's word. State machine without I/O, threads or clock of its own. Thread: loop only. One round at a time;
// a newer RoundOpen on the same base abandons the older. Bounds: the reduction of one round plus the parts that
// overtook their RoundOpen (sync/early_parts.h).
//
// clang-format off
// What is called when (by runtime/peer):
//   RoundOpen, RoundPart, RoundCommit, RoundAbandon from the transport  -> on_open, on_part, on_commit, on_abandon
//   the anchor's version changed by another way (state fetched)         -> on_version_changed
//   fenced, leaving, end                                                -> cancel
// And Round asks its RoundHost:  contribute -> prepare -> commit | abandon | fell_behind.
//
// Reports, in this order (a repeated RoundOpen repeats them):
//   contributed  entries, weight and tag of this member, before any of its parts leaves. The authority commits a round
//                only when it has this from every member, since the sum holds all of them: so the commit can name every
//                entry that the new anchor contains
//   waiting      no byte of the round has moved here for a while; every second while that is so
//   agreed       digest of the candidate, weight and tag of the whole sum
//   failed       or instead: a reason, and who was `silent` (itself: it was not ready within the budget) or sent what
//                is `malformed`
// clang-format on
//
// Reduction: sync/reducer.h. A member that does not deliver is reported (RoundReport.silent), when nothing moves
// any more and when the budget is over; the authority decides.
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/bytes.h"
#include "common/event_loop.h"
#include "sync/outer_rule.h"
#include "transport/messages.h"

namespace shoal {

// What the round asks of the peer it lives in. Implemented by runtime's peer. Callbacks may come at once or later, on
// the loop; one that comes after cancel(), abandon() or fell_behind() is ignored.
class RoundHost {
 public:
  virtual ~RoundHost() = default;
  struct Contribution {
    Payload payload;
    std::vector<std::uint64_t> entries;  // serials of own entries whose gradients the payload holds, all settled
  };
  // That of the anchor in the arena.
  virtual Version version() const = 0;
  // Bytes of the largest payload that a member can bring; so much of parts that overtook their RoundOpen is kept.
  virtual std::uint64_t payload_bytes_max() const = 0;
  // Rule of RoundOpen.rule; null: this run does not use it.
  virtual const OuterRule* rule(std::uint8_t rule_id) const = 0;
  // diloco: snapshot after the last inner step. allreduce: waits until the step's window holds exactly the winners, all
  // settled.
  virtual void contribute(const RoundOpen& open, std::function<void(Result<Contribution>)> done) = 0;
  // Runs `job`, which goes through large parts of payloads and touches nothing else, where it neither holds the loop up
  // nor waits for the device; then `done`, on the loop.
  virtual void run_aside(std::function<void()> job, std::function<void()> done) = 0;
  virtual void prepare(const RoundOpen& open, Payload reduced, std::function<void(Result<Digest>)> done) = 0;
  // version() is base + 1 when `done` is called.
  virtual void commit(const RoundOpen& open, const RoundCommit& commit, std::function<void()> done) = 0;
  // The round came to nothing: what was contributed stays counted here. Follows contribute, once.
  virtual void abandon(const RoundOpen& open) = 0;
  // The round was committed and this member cannot follow: it took no part, was too late, or got another digest.
  // `secured` = the commit names our entries (keep that in mind until the state is fetched: later commits need not name
  // us). Called instead of commit and abandon; the snapshot and candidates are still in the arena. REACTION: version()
  // >= commit.version: nothing. `differs`: end the session, join as new. Else fetch the state of commit.version or a
  // newer one: diloco shifts (StateLoad::kShiftFromSnapshot if secured, else kShiftFromAnchor); allreduce ends the
  // session, or loads afresh if the commit names all that it holds.
  virtual void fell_behind(const RoundCommit& commit, bool secured, bool differs, const std::string& why) = 0;
  struct Carried {
    std::uint64_t bytes = 0;      // both ways, of frames that are not whole yet too; a new link begins at 0
    double bytes_per_second = 0;  // measured; 0 = not yet
  };
  // By the link to that member.
  virtual Carried carried(const Session& member) const = 0;
  virtual void send_to_authority(Message message) = 0;
  virtual void send_to_member(const Session& member, Message message, std::vector<Bytes> frames) = 0;
};

class Round {
 public:
  // REQUIRES: host and loop outlive it.
  Round(RoundHost& host, EventLoop& loop, Session self, StageId stage);
  ~Round();
  void on_open(const RoundOpen& open);
  // `frame` is empty for an empty part (dense: more members than values). Parts that overtake RoundOpen are kept
  // (bounded).
  void on_part(const Session& from, const RoundPart& part, Bytes frame);
  void on_commit(const RoundCommit& commit);
  void on_abandon(const RoundAbandon& abandon);
  // Starts a round that waited for this version.
  void on_version_changed();
  // Leaving or fenced: forgets everything; calls abandon() if something was contributed.
  void cancel();
  bool active() const;
  std::optional<RoundId> current() const;

  // Bytes of parts that overtook their RoundOpen, or the largest payload's bytes. Of a round that is open here and
  // waits for our contribution, the pieces of one part from all members: as many payloads as members come to an owner.
  // A round whose part was dropped is retried.
  static constexpr std::uint64_t kEarlyBytesMax = 256u << 20;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shoal
