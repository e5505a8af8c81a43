#pragma once
// The encoded tensors of a session's entries. Thread: loop only, but for the one device job that works on an entry.
// Bounds: the ledger's live entries.
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/bytes.h"
#include "common/check.h"
#include "common/ids.h"
#include "runtime/edge/activation_frames.h"

namespace shoal {

// Those of one entry are shared with the one device job that works on it, and are written by that job or by the loop,
// never by both at a time.
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

class KeptTensors {
 public:
  void begin(EntrySerial serial, const MicrobatchId& microbatch) {
    kept_[serial] = std::make_shared<EntryTensors>();
    kept_[serial]->microbatch = microbatch;
  }
  // Null: not kept.
  std::shared_ptr<EntryTensors> find(EntrySerial serial) const {
    const auto it = kept_.find(serial);
    return it == kept_.end() ? nullptr : it->second;
  }
  // REQUIRES: they are kept.
  std::shared_ptr<EntryTensors> at(EntrySerial serial) const {
    std::shared_ptr<EntryTensors> kept = find(serial);
    SHOAL_CHECK(kept != nullptr);
    return kept;
  }
  void discard(EntrySerial serial) { kept_.erase(serial); }

 private:
  std::unordered_map<EntrySerial, std::shared_ptr<EntryTensors>> kept_;
};

}  // namespace shoal
