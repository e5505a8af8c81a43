#pragma once
// A microbatch at one peer, as a value, and the states of its life. Which state may follow which is one table
// (may_follow); a move that is not in it is a bug and stops the process. docs/PROTOCOL.md says what makes each.
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "transport/messages.h"

namespace shoal {

enum class EntryState : std::uint8_t {
  kArriving,   // header here, frames on their way (or a key frame asked for)
  kReady,      // forward may run
  kForward,    // forward runs
  kBelow,      // held: the courier waits for the next stage
  kQueued,     // gradient here (or last stage): backward waits for room or the device
  kBackward,   // backward runs
  kCounted,    // in a window, provisional
  kLate,       // its gradient was handed on, and is in no window: too late for any
  kEnding,     // nobody claims it any more while the device works on it: ended when that is done
  kUndoing,    // nobody claims it any more: waits for the device to take it out of its window
  kCommitted,  // final
  kDropped,    // final: committed while late
  kMerged,     // final: a committed round names it
  kGone,       // forgotten
};
std::string_view name_of(EntryState state);
bool may_follow(EntryState from, EntryState to);

// Its gradient is here, for each that claims it.
constexpr bool is_handed_on(EntryState state) { return state == EntryState::kCounted || state == EntryState::kLate; }
constexpr bool is_on_device(EntryState state) {
  return state == EntryState::kForward || state == EntryState::kBackward || state == EntryState::kEnding;
}
constexpr bool is_final(EntryState state) { return state >= EntryState::kCommitted; }

// What a holder has on an entry.
struct Claim {
  Session holder;
  TimePoint expires;
  TimePoint renewed;
  bool sent = false;       // the gradient went out for it
  bool link_lost = false;  // the connection to the holder is gone, and with it what was sent
};

struct Entry {
  EntryName name;
  MicrobatchId microbatch;
  SampleId sample;
  std::uint32_t epoch = 0;
  ForwardKind kind = ForwardKind::kTrain;
  std::vector<Version> versions;  // as Forward.versions
  StepId step;
  EntryState state = EntryState::kArriving;
  std::map<Lease, Claim> leases;
  std::vector<Session> above;
  std::optional<GradientHint> hint;
  Session transfer_from;           // its frames come from there
  std::optional<Lease> key_lease;  // a key frame was asked for under this claim
  std::vector<EntryName> path;     // own entry first; set when the gradient is here
  std::vector<PathTag> tags;       // of the path's entries
  double loss_sum = 0;
  std::uint64_t targets = 0;
  WeightStamp stamp = 0;
  std::uint64_t first_step = 0;  // steps made here when its forward was computed, whatever was computed again
  std::string_view doom;         // ending: why
  TimePoint orphan_told;
  std::uint32_t forward_us = 0, backward_us = 0;
};

}  // namespace shoal
