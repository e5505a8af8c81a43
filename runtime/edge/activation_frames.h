#pragma once
// An activation on its way to the next stage: as a key frame, which needs nothing, and, where the edge's codec is one
// of differences (compression/delta_codec.h), as a delta frame to what both ends hold of that sample: its *base*.
// AQ-SGD (Wang et al. 2022): the receiver's forward and the next base are both what the frames reconstruct, never the
// activation itself, so that the two ends stay equal. Which end holds which base: base_book.h. Pure; runs in device
// jobs.
#include <cstdint>
#include <optional>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/result.h"
#include "common/tensor_view.h"
#include "compression/codec.h"

namespace shoal {

// The bytes of a key frame that both ends have, whether it crossed or each made it of what a delta frame gave.
struct Base {
  Bytes frame;
  std::uint64_t hash = 0;  // of those bytes; never 0 for a frame
  bool empty() const { return frame.empty(); }
};

// The codecs of an edge whose activations are sent as differences. Borrows both; the product's live as long as the
// program.
struct DeltaCodecs {
  const Codec* key = nullptr;    // of frames that need no base, and of what is kept
  const Codec* delta = nullptr;  // of differences to it
};
// None: `codec` needs no base.
std::optional<DeltaCodecs> delta_codecs_for(CodecId codec);

struct OutgoingActivation {
  Bytes key;
  Bytes delta;                  // empty: there was no base, or it would be no smaller
  std::uint64_t base_hash = 0;  // of the base that `delta` needs
  Base after_key, after_delta;  // what both ends hold when that frame counted
};
// `activation`: fp32 (B, T, k). `base`: may be empty; one that does not fit is as none. `seed`: as Codec::encode.
// ERRORS: those of Codec::encode, of the key frame.
Result<OutgoingActivation> encode_activation(const DeltaCodecs& codecs, const PlacedTensor& activation,
                                             const Base& base, std::uint64_t seed);

// Fills `out` with an activation of `shape`, (B, T, k). Returns what both ends hold when this frame counted. ERRORS:
// those of decode_tensor; kGone: `base` is not the one that a delta frame names.
Result<Base> decode_activation(const DeltaCodecs& codecs, const Bytes& frame, const Base& base, const Shape& shape,
                               PlacedBytes out);

}  // namespace shoal
