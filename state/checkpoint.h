#pragma once
// A stage's state as a file that outlives its peer: safetensors with the arrays of a state image (state/state_image.h),
// and in its metadata what they are, signed by the peer that wrote it (docs/FILES.md). One file is one checkpoint, so
// it is there whole or not at all.
//
// Pure: bytes in, bytes out.   Thread: any.
#include <cstdint>
#include <functional>
#include <vector>

#include "common/bytes.h"
#include "common/crypto/sign.h"
#include "common/ids.h"
#include "common/result.h"
#include "state/state_image.h"
#include "sync/outer_rule.h"

namespace shoal {

struct CheckpointInfo {
  RunId run;
  StateHeader state;
  Digest digest;               // digest_of_image
  std::uint64_t sequence = 0;  // of those that its peer wrote for the run: clocks jump, this rises
  std::uint64_t saved_s = 0;   // seconds since 1970, by the clock of whoever wrote it; for people
  PeerId peer;                 // the writer
};

struct Checkpoint {
  CheckpointInfo info;
  Bytes image;
};

// A larger file is none.
inline constexpr std::uint64_t kCheckpointBytesMax = kStateImageBytesMax + (1u << 20);

// The pieces of the file; they share the image. REQUIRES: parse_state_header(image) succeeds.
struct CheckpointOrigin {
  RunId run;
  std::uint64_t sequence = 0, saved_s = 0;  // as in CheckpointInfo
};
std::vector<Bytes> checkpoint_parts(const CheckpointOrigin& origin, const Bytes& image, const KeyPair& key);

// What a file says of itself, and where its arrays stand in it.
struct CheckpointHead {
  CheckpointInfo info;
  std::uint64_t arrays_at = 0;
};
inline constexpr std::size_t kCheckpointHeadBytesMax = 64u << 10;
// The head of a file of so many bytes, from its first kCheckpointHeadBytesMax or all of it. Checks the signature and
// the sizes. ERRORS: kMalformed (no checkpoint, or what it says of itself does not fit), kTooLarge, kUnsupported (a
// format or a type of a later program), kCorrupt (what it says is not what its peer signed).
Result<CheckpointHead> parse_checkpoint_head(ByteView front, std::uint64_t file_bytes);

// Whether a file that begins so says that it is a checkpoint, of whatever format, and although it may be damaged or cut
// short behind that.
bool says_checkpoint(ByteView front);

// Reads bytes of the file into their place.
using ReadAt = std::function<Status(std::uint64_t at, MutableByteView into)>;
// Reads the arrays to where they belong in the image, so that they are in memory once, and checks the digest and that
// every value is finite. ERRORS: those of `read`, kCorrupt (they are not as they were written), kNonFinite.
Result<Checkpoint> read_checkpoint(const CheckpointHead& head, const ReadAt& read);
// All of a file. ERRORS: those of both.
Result<Checkpoint> parse_checkpoint(ByteView file);

}  // namespace shoal
