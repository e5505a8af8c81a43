#pragma once
// The edges to the stages before and behind, as one session codes what crosses them: which coder a pass is given, with
// the bases that both ends hold (BaseBook), what size tensors have there (NormGuard), and what [wire] "auto" comes to
// (LineCodec).
//
// Thread: loop only; a coder goes with its device job.   Borrows: what it is made with.   Bounds: those of its parts.
#include <string>

#include "common/log_throttle.h"
#include "router/entry.h"
#include "router/neighbours.h"
#include "runtime/edge/base_book.h"
#include "runtime/edge/hop_coders.h"
#include "runtime/edge/norm_guard.h"
#include "runtime/stage_peer/entry_tensors.h"
#include "runtime/stage_peer/line_codec.h"
#include "runtime/stage_peer/meters.h"
#include "runtime/stage_peer/stage_session.h"

namespace shoal {

class StageEdges {
 public:
  StageEdges(const StageSession& session, Neighbours& neighbours, BaseBook& bases, Meters& meters)
      : session_(session),
        neighbours_(neighbours),
        bases_(bases),
        meters_(meters),
        activations_(session.config->activation_bytes()),
        gradients_(session.config->activation_bytes()) {}

  // For a forward or an evaluation of this entry; for its backward.
  ActivationCoder activation_coder(const Entry& entry, const EntryTensors& tensors);
  GradientCoder gradient_coder(const EntryTensors& tensors);
  // Which peers of the next stage take the difference that was made of the sample.
  KnownBase known_base(SampleId sample, const OutgoingActivation& made) const;

  // What a tensor's norm does to its sender, once its pass is over.
  void activation_came(const Session& from, const MicrobatchId& microbatch, const Judged& judged) {
    book_norm(from_above_, from, microbatch, judged, "activation");
  }
  void gradient_came(const Session& from, const MicrobatchId& microbatch, const Judged& judged) {
    book_norm(from_below_, from, microbatch, judged, "gradient");
  }
  // Whether activations of this holder are not taken for now: too many were too large.
  bool rests(const Session& holder) const { return from_above_.rests(holder, session_.loop.now()); }
  // It is over.
  void forget(const Session& session) {
    from_above_.forget(session);
    from_below_.forget(session);
  }

 private:
  // What a tensor to `stage` is coded with; with "auto" by the lines to it. `role`: "activations", "gradients".
  CodecId codec_of(const Auto<CodecId>& option, LineCodec& line, StageId stage, const char* role);
  void book_norm(NormGuard& guard, const Session& from, const MicrobatchId& microbatch, const Judged& judged,
                 const char* role);
  // Its tensors were refused too often: others are asked, where there are any.
  void rest(NormGuard& guard, const Session& from, double rms, const char* role);

  const StageSession& session_;
  Neighbours& neighbours_;
  BaseBook& bases_;
  Meters& meters_;
  LogThrottle said_;
  NormGuard from_above_, from_below_;  // of the two edges: activations, gradients
  LineCodec activations_, gradients_;  // that are sent, where [wire] says "auto"
};

}  // namespace shoal
