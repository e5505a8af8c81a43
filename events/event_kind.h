#pragma once
// The kinds of events and their names: the closed list of what a process may write of itself. docs/EVENTS.md says what
// each one means, and a test compares the two. Pure; thread-safe.
#include <cstdint>
#include <ostream>
#include <string_view>

namespace shoal {

enum class EventKind : std::uint8_t {
  // Written by any process.
  kStart,
  kEnd,
  kBytes,
  kReopened,
  // Written by the trainer.
  kIssue,
  kCommit,
  kLost,
  kContradiction,
  kTrain,
  kEstimate,
  kValidation,
  // Written by the authority.
  kRoundOpen,
  kRoundFailed,
  kRoundCommit,
  kRoundAbandon,
  kRestored,
  kMember,
  kSessionOver,
  kUnreachable,
  // Written by a peer: its sessions, its state, its side of a round.
  kServing,
  kAnchor,
  kBehind,
  kShifted,
  kFenced,
  kRoundEnter,
  kRoundReport,
  kRoundDrop,
  kStepped,
  kCodec,
  // Written by a peer: one entry. The trainer writes kMerged, too.
  kEntry,
  kJoined,
  kTaken,
  kNeedKeyFrame,
  kForward,
  kRefused,
  kDrop,
  kCounted,
  kLate,
  kUndo,
  kUndone,
  kSettled,
  kCommitGone,
  kMerged,
  // Written by a holder: one claim.
  kForwardSent,
  kKeyFrame,
  kHopTimer,
  kTake,
  kGradientRejected,
};
inline constexpr auto kEventKindLast = EventKind::kGradientRejected;

// As it stands in a line: "round_commit".
std::string_view name_of(EventKind event);
std::ostream& operator<<(std::ostream& out, EventKind event);

}  // namespace shoal
