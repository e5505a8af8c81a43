#pragma once
// What the device does for the ledger: forwards, backwards and undos of entries, writes of windows. A job takes what it
// needs along; what it found goes back to the ledger on the loop.
//
// Thread: loop only.   Borrows: its parts and the tensors.   Errors: a microbatch that fails is the ledger's (Busy to
// its holders); a write or an undo that fails ends the session.
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/log_throttle.h"
#include "runtime/stage_peer/hop_coders.h"
#include "runtime/stage_peer/norm_guard.h"
#include "runtime/stage_peer/stage_parts.h"
#include "runtime/stage_peer/tensor_store.h"

namespace shoal {

class EntryJobs {
 public:
  EntryJobs(const StageParts& parts, TensorStore& tensors) : parts_(parts), tensors_(tensors) {}

  // REQUIRES: the device is idle; the job is one of the ledger's next_job() or release_job().
  void start(const Job& job);
  // Lets the parameters follow an anchor that moved. REQUIRES: the device is idle, nothing is unsettled at the other
  // buffer.
  void apply_shift();
  // Whether activations of this holder are not taken for now: too many were too large.
  bool rests(const Session& holder) const { return from_above_.rests(holder, parts_.env.loop.now()); }

 private:
  void forward(EntrySerial serial, bool evaluate);
  ActivationCoder activation_coder(EntrySerial serial, const EntryTensors& tensors, bool evaluate) const;
  GradientCoder gradient_coder(const EntryTensors& tensors) const;
  void backward(const Job& job);
  void undo(const Job& job);
  void release(const Job& job);
  void inner_step(const Job& job);
  void note_refused(EntrySerial serial, std::string_view why, std::string_view role);
  // What a tensor's norm does to its sender. `role`: "activation", "gradient".
  void book_norm(NormGuard& guard, const Session& from, const MicrobatchId& microbatch, const Judged& judged,
                 const char* role);
  void warn(const char* what, const MicrobatchId& microbatch, const std::string& how);

  StageParts parts_;
  TensorStore& tensors_;
  LogThrottle said_;
  NormGuard from_above_, from_below_;  // of the two edges: activations, gradients
};

}  // namespace shoal
