#pragma once
// The encoded tensors of live entries: what came in, what goes on, the gradients both ways; and which frames on the way
// here are whose input.
//
// Thread: loop only; one entry's tensors are shared with the one device job that works on it, and are written by that
// job or by the loop, never by both at a time.   Bounds: the ledger's live entries.
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/tensor_view.h"
#include "runtime/stage_peer/activation_frames.h"
#include "stages/executor.h"
#include "transport/links.h"

namespace shoal {

struct EntryTensors {
  MicrobatchId microbatch;
  std::vector<Bytes> input;   // encoded: tokens, then the activation (not at stage 0)
  OutgoingActivation output;  // encoded, for the next stage
  // With a codec of differences: which branches were sent the delta, and what both ends have when the input counted.
  std::map<Lease, bool> sent_deltas{};
  Base after{};
  Bytes gradient_in;   // encoded, from the next stage
  Bytes gradient_out;  // encoded, for the holders
};

class TensorStore {
 public:
  // The entry's input is on its way: for the first time, or again as key frames.
  void await(EntrySerial serial, const MicrobatchId& microbatch, const InboundFrames& input);
  // Whose input these frames are, once; none: nobody's any more.
  std::optional<EntrySerial> arrived(const InboundFrames& input);
  void forget(const InboundFrames& input) { inputs_.erase(input); }
  void forget_link(const PeerId& peer);  // what was on its way from there does not come

  std::shared_ptr<EntryTensors> find(EntrySerial serial) const;  // null: not kept
  void erase(EntrySerial serial) { entries_.erase(serial); }

 private:
  std::unordered_map<EntrySerial, std::shared_ptr<EntryTensors>> entries_;
  std::map<InboundFrames, EntrySerial> inputs_;
};

}  // namespace shoal
