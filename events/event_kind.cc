#include "events/event_kind.h"

#include <array>
#include <utility>

#include "common/check.h"

namespace shoal {
namespace {

constexpr std::size_t kCount = static_cast<std::size_t>(kEventKindLast) + 1;
constexpr std::array<std::pair<EventKind, std::string_view>, kCount> kTexts = {{
    {EventKind::kStart, "start"},
    {EventKind::kEnd, "end"},
    {EventKind::kBytes, "bytes"},
    {EventKind::kReopened, "reopened"},
    {EventKind::kIssue, "issue"},
    {EventKind::kCommit, "commit"},
    {EventKind::kLost, "lost"},
    {EventKind::kContradiction, "contradiction"},
    {EventKind::kTrain, "train"},
    {EventKind::kEstimate, "estimate"},
    {EventKind::kValidation, "validation"},
    {EventKind::kRoundOpen, "round_open"},
    {EventKind::kRoundFailed, "round_failed"},
    {EventKind::kRoundCommit, "round_commit"},
    {EventKind::kRoundAbandon, "round_abandon"},
    {EventKind::kRestored, "restored"},
    {EventKind::kMember, "member"},
    {EventKind::kSessionOver, "session_over"},
    {EventKind::kUnreachable, "unreachable"},
    {EventKind::kServing, "serving"},
    {EventKind::kAnchor, "anchor"},
    {EventKind::kBehind, "behind"},
    {EventKind::kShifted, "shifted"},
    {EventKind::kFenced, "fenced"},
    {EventKind::kRoundEnter, "round_enter"},
    {EventKind::kRoundReport, "round_report"},
    {EventKind::kRoundDrop, "round_drop"},
    {EventKind::kStepped, "stepped"},
    {EventKind::kEntry, "entry"},
    {EventKind::kJoined, "joined"},
    {EventKind::kTaken, "taken"},
    {EventKind::kNeedKeyFrame, "need_key_frame"},
    {EventKind::kForward, "forward"},
    {EventKind::kRefused, "refused"},
    {EventKind::kDrop, "drop"},
    {EventKind::kCounted, "counted"},
    {EventKind::kLate, "late"},
    {EventKind::kUndo, "undo"},
    {EventKind::kUndone, "undone"},
    {EventKind::kSettled, "settled"},
    {EventKind::kCommitGone, "commit_gone"},
    {EventKind::kMerged, "merged"},
    {EventKind::kForwardSent, "forward_sent"},
    {EventKind::kKeyFrame, "key_frame"},
    {EventKind::kHopTimer, "hop_timer"},
    {EventKind::kTake, "take"},
    {EventKind::kGradientRejected, "gradient_rejected"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kCount; ++i)
    if (static_cast<std::size_t>(kTexts[i].first) != i || kTexts[i].second.empty()) return false;
  return true;
}
static_assert(in_order(), "one row an event, in the order of the enumeration");

}  // namespace

std::string_view name_of(EventKind event) {
  SHOAL_CHECK(event <= kEventKindLast);
  return kTexts[static_cast<std::size_t>(event)].second;
}

std::ostream& operator<<(std::ostream& out, EventKind event) { return out << name_of(event); }

}  // namespace shoal
