#pragma once
// What the stages of one process send each other where it shall be what peers would send (`solo --wire`): the product's
// coders, the codecs of [wire], the seeds of rounding and the bases of samples (runtime/edge), as in a swarm of one
// replica a stage in which every microbatch counts and nobody leaves. "auto" is raw: one process has no lines that
// could be measured. How large a tensor may be is not judged.
//
// Owns a book of bases for each stage, bounded as a peer's is ([wire] base_mib, each direction). Thread: the one that
// computes.
#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "runtime/config/config.h"
#include "runtime/edge/base_book.h"
#include "runtime/edge/hop_coders.h"
#include "stages/stage_spec.h"

namespace shoal {

// All that crossed between stages in training, both ways. Bytes are those of frames.
struct EdgeTraffic {
  std::uint64_t forward_bytes = 0, backward_bytes = 0;
  std::uint64_t key_frames = 0, delta_frames = 0;  // activations over edges whose codec is one of differences
  std::uint64_t no_room = 0;                       // bases that did not fit

  EdgeTraffic& operator+=(const EdgeTraffic& other) {
    forward_bytes += other.forward_bytes;
    backward_bytes += other.backward_bytes;
    key_frames += other.key_frames;
    delta_frames += other.delta_frames;
    no_room += other.no_room;
    return *this;
  }
};

class CodedEdges {
 public:
  // ERRORS: kInput (one stage has no edge).
  static Result<CodedEdges> make(const RunConfig& config);

  // For the forward of `stage`; `frame` is what the stage before it sent, empty at the first one.
  ActivationCoder forward_coder(const StageSpec& stage, const MicrobatchId& microbatch, SampleId sample,
                                Bytes frame) const;
  // That pass was made. Returns what goes to the next stage: empty behind the last one.
  Bytes forwarded(const StageSpec& stage, SampleId sample, ActivationCoder& coder);

  // For the backward of `stage`; `frame` is what the stage behind it sent, empty at the last one.
  GradientCoder backward_coder(const StageSpec& stage, const MicrobatchId& microbatch, Bytes frame) const;
  // That pass was made. Returns what goes to the stage before: empty at the first one.
  Bytes returned(const GradientCoder& coder);

  EdgeTraffic traffic() const;
  // "int4 forward, int8 and raw backward".
  std::string text() const;

 private:
  explicit CodedEdges(const RunConfig& config);
  // Those of the edge behind `stage`, where its codec is one of differences.
  std::optional<DeltaCodecs> deltas(StageId edge) const { return delta_codecs_for(forward_.at(edge.value)); }

  std::vector<CodecId> forward_, backward_;  // by edge
  std::vector<BaseBook> books_;              // by stage
  EdgeTraffic traffic_;                      // its bytes
};

}  // namespace shoal
