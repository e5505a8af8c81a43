#pragma once
// What the codecs without a base share.
#include "compression/codec.h"
#include "compression/frame.h"

namespace shoal {

// Every check of a frame that needs no knowledge of the payload, its checksum included, before a byte of `out` is
// written. ERRORS: as read_frame; kMalformed (another codec's frame, a base hash, payload or `out` of another size),
// kCorrupt.
Result<FrameView> read_stateless_frame(ByteView frame, const Codec& codec, MutableByteView out);

}  // namespace shoal
