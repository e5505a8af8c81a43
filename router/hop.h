#pragma once
// What a hop is opened with, and what a courier asks of the process that holds: the trainer for stage 0, a peer for the
// stage after its own.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/bytes.h"
#include "common/ids.h"
#include "events/event_record.h"
#include "transport/messages.h"

namespace shoal {

// Which peers of the next stage kept something of a sample, so that less crosses to them.
struct KnownBase {
  std::vector<Session> holders;
  std::uint64_t frame_bytes = 0;  // as HopSpec.frame_bytes, to one of them
  bool has(const Session& session) const { return std::find(holders.begin(), holders.end(), session) != holders.end(); }
};

struct HopSpec {
  MicrobatchId microbatch;
  SampleId sample;
  std::uint32_t epoch = 0;
  ForwardKind kind = ForwardKind::kTrain;
  std::vector<Version> versions;  // as Forward.versions
  StepId step;
  StageId to;                     // the stage that is asked
  std::vector<Session> above;     // as Forward.above: this process last
  std::uint64_t frame_bytes = 0;  // about what a Forward's frames weigh
  KnownBase base{};
  std::optional<GradientHint> hint;  // a gradient for our own entry waits there: Take first
};

// The tag of an entry of ours in the path of this microbatch: without it the trainer takes the entry for nobody's.
using TagOf = std::function<std::uint64_t(const MicrobatchId& microbatch, EntrySerial serial)>;

// What becomes of a branch's frames. Each kSent is followed by exactly one of the others, unless the courier itself
// ends.
enum class BranchEnd : std::uint8_t {
  kSent,     // handed to the link (again after an end: a key frame for a claim that had joined another's entry)
  kSettled,  // our own entry is committed, and this branch won its hop: what it sent is what counted
  kAborted,  // anything else: lost, refused, released, or answered Have, when another's frames were used
};

// Calls come in the turn of the call that caused them.
class HopOwner {
 public:
  virtual ~HopOwner() = default;
  // The encoded frames of this Forward: tokens, then the activation (not to stage 0). `key`: frames that need no base,
  // since the receiver lacks the one that was named; then the Forward goes out again, under the same lease.
  virtual std::vector<Bytes> frames_of(const Session& to, const Forward& message, bool key) = 0;
  // For codecs that keep bases. Never calls the courier.
  virtual void on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) = 0;
  // The first gradient of a hop: from now on it is won.
  virtual void on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) = 0;
  // No peer of the stage can be asked (again called when that ends, with parked = false).
  virtual void on_parked(const MicrobatchId& microbatch, StageId stage, bool parked) = 0;
  virtual void write(const EventRecord& event) = 0;  // of a claim, into the process's EventLog
};

}  // namespace shoal
