#pragma once
// One stage's shared state as bytes: what a joiner fetches, a late member catches up with, and a checkpoint can be made
// of. Layout (little-endian): magic "shoalst1", u8 rule, u8 roles n, u16 stage, u32 0, u64 version, u64 tag of the
// anchor, u64 floats F of one array, then 1 + n arrays of F floats: the anchor and the rule's shared_roles() in order.
// Deterministic: members that agree on a version make the same bytes. Thread: device thread only (arena), but
// parse_state_header and digest_of_image, which are pure.
#include <cstdint>
#include <functional>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/result.h"
#include "sync/outer_rule.h"

namespace shoal {

inline constexpr std::size_t kStateHeaderBytes = 40;
inline constexpr std::uint64_t kStateImageBytesMax = 8ull << 30;  // larger ones are not fetched

struct StateHeader {
  RuleId rule = RuleId::kAllreduce;
  std::uint8_t roles = 0;
  StageId stage;
  Version version;
  CountTag tag = 0;
  std::uint64_t floats = 0;
};

// ERRORS: kMalformed (magic, rule, or a size that does not fit the header).
Result<StateHeader> parse_state_header(ByteView image);
// Equal to state_digest() of whoever made the image. REQUIRES: parse_state_header succeeded.
Digest digest_of_image(ByteView image);

// The state of version 0: parameters as the spec's seed makes them (zeros in an arena that holds no such parameters),
// and the anchor equal to them.
void begin_from_seed(StageExecutor& executor);

// Copies anchor and shared roles. REQUIRES: between rounds' commits, so that anchor and roles belong to `version`.
Bytes make_state_image(StageExecutor& executor, const OuterRule& rule, Version version);

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
