#include "router/entry.h"

#include <algorithm>
#include <iterator>

namespace shoal {

namespace {

using S = EntryState;

struct Move {
  EntryState from, to;
  std::string_view because;
};

constexpr Move kMoves[] = {
    {S::kArriving, S::kReady, "its frames are here"},
    {S::kArriving, S::kGone, "its frames do not come, or nobody claims it"},
    {S::kReady, S::kForward, "the device is free"},
    {S::kReady, S::kGone, "nobody claims it"},
    {S::kForward, S::kArriving, "its frames need a base that is not here: a key frame is asked for"},
    {S::kForward, S::kBelow, "done: the next stage has its turn, or the loss of an evaluation goes up"},
    {S::kForward, S::kQueued, "done at the last stage"},
    {S::kForward, S::kEnding, "nobody claims it"},
    {S::kForward, S::kGone, "it failed"},
    {S::kBelow, S::kQueued, "its gradient is here"},
    {S::kBelow, S::kGone, "nobody claims it, or the loss of its evaluation was handed on"},
    {S::kQueued, S::kBackward, "its window has room, or none would take it any more"},
    {S::kQueued, S::kGone, "nobody claims it"},
    {S::kBackward, S::kBelow, "the gradient that came is of no use: another is asked for"},
    {S::kBackward, S::kCounted, "done, in its window"},
    {S::kBackward, S::kLate, "done, in no window"},
    {S::kBackward, S::kEnding, "nobody claims it"},
    {S::kBackward, S::kGone, "it failed"},
    {S::kEnding, S::kUndoing, "the device is done, and it is in a window"},
    {S::kEnding, S::kGone, "the device is done, and it is in no window"},
    {S::kCounted, S::kUndoing, "nobody claims it"},
    {S::kCounted, S::kCommitted, "the trainer's COMMIT or STEP names it"},
    {S::kLate, S::kDropped, "the trainer's COMMIT or STEP names it"},
    {S::kLate, S::kGone, "nobody claims it"},
    {S::kUndoing, S::kGone, "the device took it out"},
    {S::kCommitted, S::kMerged, "a committed round names it"},
    {S::kCommitted, S::kGone, "below the low-water mark, in no window and not in the parameters"},
    {S::kDropped, S::kGone, "below the low-water mark"},
    {S::kMerged, S::kGone, "below the low-water mark"},
};

// In the order of EntryState.
constexpr std::string_view kNames[] = {"arriving", "ready",  "forward", "below",     "queued",  "backward", "counted",
                                       "late",     "ending", "undoing", "committed", "dropped", "merged",   "gone"};
static_assert(std::size(kNames) == static_cast<std::size_t>(S::kGone) + 1);

}  // namespace

std::string_view name_of(EntryState state) { return kNames[static_cast<std::size_t>(state)]; }

bool may_follow(EntryState from, EntryState to) {
  return std::any_of(std::begin(kMoves), std::end(kMoves),
                     [&](const Move& move) { return move.from == from && move.to == to; });
}

}  // namespace shoal
