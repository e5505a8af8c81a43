#pragma once
// A peer's side of membership: join, beats, the newest signed list, fencing, leaving. State machine without I/O,
// threads or clock of its own. Thread: loop only. Bounds: one list (limits::kListBytesMax).
//
// clang-format off
// What is called when (by runtime/peer):
//   start()           once the transport is up
//   on_authority_up   with the link
//   on_message        JoinAnswer, Members, MembersChange, BeatAck, Fenced, Goodbye, End from the authority alone
//   beat_now()        when `serving`, version or leaving changed
//   leave()           at Ctrl-C or for another stage, when the open entries are settled (or with what there is)
//   leave_at_once()   at the second Ctrl-C, and where a move waited for too long
// clang-format on
// And Membership asks its MembershipPort. A change that does not begin with our list, or a BeatAck that names a newer
// one, makes it ask for what it lacks (MembersQuery), at most once a second. While the authority is away nothing here
// ends: hops go on, lists and rounds wait.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "common/event_loop.h"
#include "transport/messages.h"

namespace shoal {

struct MembershipOptions {
  RunId run;  // whose key signs lists
  Session self;
  JoinRequest request;
  Duration beat_period = 1s;
  Duration join_retry = 2s;
  Duration list_retry = 1s;  // of asking for a list
  Duration dial_retry = 5s;  // after the answer that nobody can dial us, or that it is too early
};

// What a peer's membership takes.
using MembershipMessage = std::variant<JoinAnswer, Members, MembersChange, BeatAck, Fenced, Goodbye, End>;

class MembershipPort {
 public:
  virtual ~MembershipPort() = default;
  virtual void send_to_authority(Message message) = 0;
  virtual Beat make_beat() = 0;
  virtual void on_joined(const JoinAnswer& answer) = 0;    // once
  virtual void on_refused(const std::string& reason) = 0;  // the request is not repeated
  // Nobody can dial us where the request says; it is repeated after dial_retry. `reason`: what was tried.
  virtual void on_unreachable(const std::string& reason) = 0;
  // We are not admitted yet, for a reason that is over by itself; the request is repeated after dial_retry.
  virtual void on_later(const std::string& reason) = 0;
  virtual void on_members(const MemberList& list) = 0;  // epochs only rise
  // This session is over: stop serving, take part in no round, join again as a new session. Last call.
  virtual void on_fenced(const std::string& reason) = 0;
  virtual void on_goodbye() = 0;                       // after leave(): may go. Last call
  virtual void on_end(const std::string& reason) = 0;  // the run is over, exit 0. Last call
  virtual void on_status(const BeatAck& status) = 0;
};

class Membership {
 public:
  // REQUIRES: port and loop outlive it.
  Membership(MembershipOptions options, MembershipPort& port, EventLoop& loop);
  ~Membership();
  void start();
  void on_authority_up();
  // REQUIRES: the authority sent it. ERRORS (nothing changed): kCorrupt (signature), kForeign (another run's list),
  // kMalformed (also: a change that contradicts our list, which is then asked for anew), kTooLarge.
  Status on_message(const MembershipMessage& message);
  void beat_now();
  // Asks to go; on_goodbye follows when a round secured what we hold (`round_wanted`) or at once. Repeated with the
  // beats.
  void leave(bool round_wanted);
  void leave_at_once();  // says Goodbye, asks nothing
  // The session is over by this process's own word: nothing is said any more, and the authority ends it by its silence
  // or when the next session joins.
  void stop();

  enum class Phase : std::uint8_t { kIdle, kJoining, kMember, kLeaving, kOver };
  Phase phase() const;
  std::optional<StageId> stage() const;  // once joined
  const std::optional<MemberList>& list() const;
  const StageMembers* stage_members() const;  // of our stage, on the newest list; null: no list, or not on it
  std::vector<PeerId> donors() const;         // others of them, that may hold its state
  // No other member of our stage may hold its state, by the list: if we go, it goes. When several leave at a time
  // the authority lets all go but the last.
  bool last_holder() const;
  std::optional<StageId> empty_stage() const;  // of the newest list: the first without a serving member

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What the run's key signs at its end, so that anybody may pass the word on.
std::vector<std::uint8_t> end_text(const RunId& run, const std::string& reason);
// ERRORS: kCorrupt (the run's key did not sign it).
Status check_end(const End& end, const RunId& run);

}  // namespace shoal
