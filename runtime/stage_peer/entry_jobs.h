#pragma once
// What the device does for the ledger: forwards, backwards and undos of entries, writes of windows. A job takes what it
// needs along; what it found goes back to the ledger on the loop.
//
// Thread: loop only.   Borrows: what it is made with.   Errors: a microbatch that fails is the ledger's (Busy to
// its holders); a write or an undo that fails ends the session.
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/log_throttle.h"
#include "runtime/edge/hop_coders.h"
#include "runtime/edge/norm_guard.h"
#include "runtime/stage_peer/device_scheduler.h"
#include "runtime/stage_peer/entries.h"
#include "runtime/stage_peer/line_codec.h"
#include "runtime/stage_peer/meters.h"
#include "runtime/stage_peer/stage_session.h"

namespace shoal {

// Which run files would need less of a peer that serves `spec`: the end of a HINT.
std::string smaller_run_text(const RunConfig& config, const StageSpec& spec);

class EntryJobs {
 public:
  EntryJobs(const StagePeerOptions& options, const StagePeerEnvironment& env, StagePeerOwner& owner, Entries& entries,
            DeviceScheduler& device, Meters& meters, ArenaState& arena)
      : options_(options),
        env_(env),
        owner_(owner),
        entries_(entries),
        device_(device),
        meters_(meters),
        arena_(arena),
        activations_(options.config->activation_bytes()),
        gradients_(options.config->activation_bytes()) {}

  // What the executor must hear of before anything writes the parameters. REQUIRES of both: the device is idle. False:
  // there is nothing to do.
  bool start_release();
  bool start_next();
  // Lets the parameters follow an anchor that moved. REQUIRES: the device is idle, nothing is unsettled at the other
  // buffer.
  void apply_shift();
  // Whether activations of this holder are not taken for now: too many were too large.
  bool rests(const Session& holder) const { return from_above_.rests(holder, env_.loop.now()); }
  // It is over.
  void forget(const Session& session) {
    from_above_.forget(session);
    from_below_.forget(session);
  }

 private:
  void start(const Job& job);
  void forward(EntrySerial serial, bool evaluate);
  ActivationCoder activation_coder(EntrySerial serial, const EntryTensors& tensors, bool evaluate);
  GradientCoder gradient_coder(const EntryTensors& tensors);
  // What a tensor to `stage` is coded with; with "auto" by the lines to it. `role`: "activations", "gradients".
  CodecId codec_of(const Auto<CodecId>& option, LineCodec& line, StageId stage, const char* role);
  void backward(const Job& job);
  // A pass failed so: before the ledger hears of it.
  void note_memory(const Error& error);
  void undo(const Job& job);
  void release(const Job& job);
  void inner_step(const Job& job);
  void note_refused(EntrySerial serial, std::string_view why, std::string_view role);
  // What a tensor's norm does to its sender. `role`: "activation", "gradient".
  void book_norm(NormGuard& guard, const Session& from, const MicrobatchId& microbatch, const Judged& judged,
                 const char* role);
  // Its tensors were refused too often: others are asked, where there are any.
  void rest(NormGuard& guard, const Session& from, double rms, const char* role);
  void warn(const char* what, const MicrobatchId& microbatch, const std::string& how);

  const StagePeerOptions& options_;
  const StagePeerEnvironment& env_;
  StagePeerOwner& owner_;
  Entries& entries_;
  DeviceScheduler& device_;
  Meters& meters_;
  ArenaState& arena_;
  LogThrottle said_;
  NormGuard from_above_, from_below_;  // of the two edges: activations, gradients
  LineCodec activations_, gradients_;  // that are sent, where [wire] says "auto"
};

}  // namespace shoal
