#include "events/event_name.h"

#include <array>
#include <utility>

#include "common/check.h"

namespace shoal {
namespace {

constexpr std::size_t kCount = static_cast<std::size_t>(kEventNameLast) + 1;
constexpr std::array<std::pair<EventName, std::string_view>, kCount> kTexts = {{
    {EventName::kStart, "start"},
    {EventName::kEnd, "end"},
    {EventName::kBytes, "bytes"},
    {EventName::kReopened, "reopened"},
    {EventName::kIssue, "issue"},
    {EventName::kCommit, "commit"},
    {EventName::kLost, "lost"},
    {EventName::kContradiction, "contradiction"},
    {EventName::kTrain, "train"},
    {EventName::kValidation, "validation"},
    {EventName::kRoundOpen, "round_open"},
    {EventName::kRoundFailed, "round_failed"},
    {EventName::kRoundCommit, "round_commit"},
    {EventName::kRoundAbandon, "round_abandon"},
    {EventName::kMember, "member"},
    {EventName::kSessionOver, "session_over"},
    {EventName::kUnreachable, "unreachable"},
    {EventName::kServing, "serving"},
    {EventName::kAnchor, "anchor"},
    {EventName::kBehind, "behind"},
    {EventName::kShifted, "shifted"},
    {EventName::kFenced, "fenced"},
    {EventName::kRoundEnter, "round_enter"},
    {EventName::kRoundReport, "round_report"},
    {EventName::kRoundDrop, "round_drop"},
    {EventName::kStepped, "stepped"},
    {EventName::kEntry, "entry"},
    {EventName::kJoined, "joined"},
    {EventName::kTaken, "taken"},
    {EventName::kNeedKeyFrame, "need_key_frame"},
    {EventName::kForward, "forward"},
    {EventName::kRefused, "refused"},
    {EventName::kDrop, "drop"},
    {EventName::kCounted, "counted"},
    {EventName::kUndo, "undo"},
    {EventName::kUndone, "undone"},
    {EventName::kSettled, "settled"},
    {EventName::kCommitGone, "commit_gone"},
    {EventName::kMerged, "merged"},
    {EventName::kForwardSent, "forward_sent"},
    {EventName::kKeyFrame, "key_frame"},
    {EventName::kHopTimer, "hop_timer"},
    {EventName::kTake, "take"},
    {EventName::kGradientRejected, "gradient_rejected"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kCount; ++i)
    if (static_cast<std::size_t>(kTexts[i].first) != i || kTexts[i].second.empty()) return false;
  return true;
}
static_assert(in_order(), "one row an event, in the order of the enumeration");

}  // namespace

std::string_view name_of(EventName event) {
  SHOAL_CHECK(event <= kEventNameLast);
  return kTexts[static_cast<std::size_t>(event)].second;
}

std::ostream& operator<<(std::ostream& out, EventName event) { return out << name_of(event); }

}  // namespace shoal
