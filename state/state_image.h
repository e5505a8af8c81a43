#pragma once
// One stage's shared state as bytes: what a joiner fetches, a late member catches up with, and a checkpoint can be made
// of. Layout (little-endian): magic "shoalst1", u8 rule, u8 roles n, u16 stage, u32 0, u64 version, u64 tag of the
// anchor, u64 floats F of one array, then 1 + n arrays of F floats: the anchor and the rule's shared_roles() in order.
// Deterministic: members that agree on a version make the same bytes. Thread: device thread only (arena), but
// parse_state_header and digest_of_image, which are pure.
#include <cstdint>
#include <functional>
#include <vector>

#include "common/bytes.h"
#include "common/crypto/hash.h"
#include "common/ids.h"
#include "common/result.h"
#include "sync/outer_rule.h"

namespace shoal {

inline constexpr std::size_t kStateHeaderBytes = 40;
inline constexpr std::uint64_t kStateImageBytesMax = 8ull << 30;  // larger ones are not fetched

struct StateHeader {
  RuleId rule{};
  std::uint8_t roles = 0;
  StageId stage;
  Version version;
  CountTag tag = 0;
  std::uint64_t floats = 0;
};

// Bytes of the images that arrays of so many floats can make: the first state's, and one size a rule.
std::vector<std::uint64_t> image_sizes(std::uint64_t floats);

// ERRORS: kMalformed (magic, rule, or a size that does not fit the header).
Result<StateHeader> parse_state_header(ByteView image);
// Equal to state_digest() of whoever made the image; the header's stage and version are not in it. REQUIRES:
// parse_state_header succeeded.
Digest digest_of_image(ByteView image);
// A hasher to which the arrays' bytes are still to be given has taken this of the header.
void begin_image_digest(Hasher& hasher, const StateHeader& header);

// Digest and root (state/state_transfer.h) of an image, chunk by chunk from the first on, while the rest is still on
// its way. Thread: one at a time.   Borrows: the image, whose chunks are not changed once they are hashed.
class ImageHasher {
 public:
  explicit ImageHasher(ByteView image) : image_(image) {}
  // Hashes the next chunk, kHashChunkBytes or the rest. REQUIRES: !done(), its bytes are here.
  void next();
  std::size_t hashed() const { return leaves_.size(); }
  bool done() const { return hashed() * kHashChunkBytes >= image_.size(); }
  // REQUIRES: done(). ERRORS: kMalformed, as parse_state_header.
  struct Hashes {
    StateHeader header;
    Digest digest;  // digest_of_image
    Digest root;    // tree_digest
  };
  Result<Hashes> finish();

 private:
  ByteView image_;
  Hasher digest_;
  std::vector<Digest> leaves_;
};

// The state of version 0: parameters as the spec's seed makes them (zeros in an arena that holds no such parameters),
// and the anchor equal to them.
void begin_from_seed(StageExecutor& executor);

// Copies anchor and shared roles. REQUIRES: between rounds' commits, so that anchor and roles belong to `version`.
Bytes make_state_image(StageExecutor& executor, const OuterRule& rule, Version version);

// kStateHeaderBytes of them.
void write_state_header(const StateHeader& header, std::uint8_t* at);
// The image with this header; its arrays, the anchor and the shared ones in order, are still to be written behind it.
Buffer begin_state_image(const StateHeader& header);

enum class StateLoad : std::uint8_t {
  kFresh,              // a joiner: parameters := anchor, nothing local is kept
  kShiftFromAnchor,    // missed a committed round that does not name our entries: theta += new anchor - old anchor
  kShiftFromSnapshot,  // missed one that names them (diloco): theta += new anchor - the snapshot we contributed
};
// Writes the image into the arena. `rule_of` gives the rule of the header. After kFresh the executor must hold no
// entries; the shift of the other two is applied with the next write. Moments that the image does not carry are zeroed
// by kFresh, kept otherwise. ERRORS: kMalformed (another stage or size), kNonFinite, kBusy (kFresh: entries unsettled),
// kUnsupported (a shift under allreduce: the parameters are the anchor there, so join afresh).
Result<StateHeader> load_state_image(StageExecutor& executor, ByteView image, StateLoad load,
                                     const std::function<const OuterRule*(RuleId)>& rule_of);

}  // namespace shoal
