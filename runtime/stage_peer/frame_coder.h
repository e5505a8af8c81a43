#pragma once
// Where codecs with bases live (delta frames, compression/codec.h): a codec is pure, whoever implements this keeps the
// bases at both ends of a peer's links and decides which one a frame is a delta to. None is shipped: without one every
// activation goes out as the one key frame that its entry was encoded to.
//
// Bases change where a microbatch is decided, at both ends: at the sender on_branch says which frames counted, at the
// receiver an entry is settled or ends. An end that forgot a base, or never had it, costs one key frame: the frame
// names its base by hash, decode() answers kGone, and the peer asks the holder for a key frame (NeedKeyFrame).
#include <optional>

#include "common/ids.h"
#include "common/tensor_view.h"
#include "router/courier.h"

namespace shoal {

class FrameCoder {
 public:
  virtual ~FrameCoder() = default;
  // Sender, loop: a frame of `activation` for this peer alone. Nothing: it gets the entry's key frame.
  virtual std::optional<Bytes> delta_for(const Session& to, SampleId sample, const HostTensor& activation) = 0;
  // Sender, loop: what became of the frames that a peer was sent.
  virtual void on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) = 0;
  // Receiver, device thread: the activation of a frame. ERRORS: those of decode_tensor; kGone: its base is not here.
  virtual Result<HostTensor> decode(ByteView frame, DType dtype, const Shape& shape) = 0;
};

}  // namespace shoal
