#pragma once
// Where a peer stands in its life, and why, for people. Which phase may follow which is one table (may_follow); a move
// that is not in it is a bug and stops the process. Value.   Thread: loop only.
#include <cstdint>
#include <string>
#include <string_view>

namespace shoal {

enum class PeerPhase : std::uint8_t {
  kConnecting,  // no link to the authority, or no manifest
  kJoining,     // the authority is asked for a stage, which is then built
  kFetching,    // the stage's state is on its way, or waited for
  kLoading,     // it is here and goes into the executor
  kServing,
  kLeaving,     // the authority is asked to let us go
  kPaused,      // its owner wants the device: no session, and none begins
  kRestarting,  // the session is over, the next one not begun: nothing that comes concerns either
  kOver,
};
std::string_view name_of(PeerPhase phase);

// What may follow what:
//   connecting -> joining -> fetching -> loading -> serving -> leaving -> over
//   joining -> serving (the stage begins from the seed);  loading -> fetching (the stage moved on meanwhile)
//   leaving from every phase of a session that has a stage;  restarting from all of them (from leaving when it moves to
//   another stage or pauses), then connecting, or paused and connecting when it is resumed; over from all, and nothing
//   after it
bool may_follow(PeerPhase from, PeerPhase to);

class PeerState {
 public:
  PeerPhase phase() const { return phase_; }
  bool is(PeerPhase phase) const { return phase_ == phase; }
  // A session is under way: messages concern it.
  bool in_session() const { return !is(PeerPhase::kPaused) && !is(PeerPhase::kRestarting) && !is(PeerPhase::kOver); }
  const std::string& reason() const { return reason_; }

  // REQUIRES: may_follow(phase(), to).
  void move(PeerPhase to, std::string reason);
  void because(std::string reason) { reason_ = std::move(reason); }

 private:
  PeerPhase phase_ = PeerPhase::kConnecting;
  std::string reason_;
};

}  // namespace shoal
