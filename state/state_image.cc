#include "state/state_image.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "common/byte_codec.h"
#include "common/crypto/hash.h"
#include "sync/rule_arrays.h"

namespace shoal {
namespace {

constexpr std::string_view kMagic = "shoalst1";

void read_array(ByteView image, std::size_t index, std::uint64_t floats, std::span<float> out) {
  std::memcpy(out.data(), image.data() + kStateHeaderBytes + index * floats * sizeof(float), floats * sizeof(float));
}

void zero_role(Arena& arena, ArenaRole role) {
  const std::span<float> values = arena.span(role);
  std::fill(values.begin(), values.end(), 0.0f);
  arena.tag(role) = 0;
  arena.push(role);
}

Status check_arrays(ByteView image, const StateHeader& header, std::size_t arena_size, const OuterRule* rule,
                    StageId stage) {
  const bool first = header.version == Version(0) && header.roles == 0;  // state/first_state.h
  if (rule == nullptr || (!first && rule->shared_roles().size() != header.roles))
    return make_error(ErrorCode::kMalformed, "a state image of a rule that this run does not use");
  if (header.stage != stage || header.floats != arena_size)
    return make_error(ErrorCode::kMalformed, "a state image of another stage or model");
  std::vector<float> values(header.floats);
  for (std::size_t i = 0; i <= header.roles; ++i) {
    read_array(image, i, header.floats, values);
    SHOAL_TRY(check_all_finite(values, i == 0 ? "the fetched anchor" : "a fetched shared array"));
  }
  return Status::success();
}

}  // namespace

void begin_image_digest(Hasher& hasher, const StateHeader& header) {
  hasher.update_u64(static_cast<std::uint64_t>(header.rule));
  hasher.update_u64(header.tag);
  hasher.update_u64(header.floats);
}

std::vector<std::uint64_t> image_sizes(std::uint64_t floats) {
  std::vector<std::uint64_t> sizes{kStateHeaderBytes + floats * sizeof(float)};  // the first one
  for (const RuleTraits& rule : kRuleTraits)
    sizes.push_back(kStateHeaderBytes + (1 + rule.shared_arrays) * floats * sizeof(float));
  return sizes;
}

Result<StateHeader> parse_state_header(ByteView image) {
  if (image.size() < kStateHeaderBytes || std::memcmp(image.data(), kMagic.data(), kMagic.size()) != 0)
    return make_error(ErrorCode::kMalformed, "not a state image");
  StateHeader header;
  const std::uint8_t rule = image[8];
  if (rule >= std::size(kRuleNames)) return make_error(ErrorCode::kMalformed, "a state image of an unknown rule");
  header.rule = static_cast<RuleId>(rule);
  header.roles = image[9];
  header.stage = StageId(get_le<std::uint16_t>(image, 10));
  header.version = Version(get_le<std::uint64_t>(image, 16));
  header.tag = get_le<std::uint64_t>(image, 24);
  header.floats = get_le<std::uint64_t>(image, 32);
  const std::uint64_t payload = image.size() - kStateHeaderBytes;
  const std::uint64_t arrays = 1u + header.roles;
  if (header.floats > payload / sizeof(float) || header.floats * arrays * sizeof(float) != payload)
    return make_error(ErrorCode::kMalformed, "a state image whose size does not fit its header");
  return header;
}

Digest digest_of_image(ByteView image) {
  Hasher hasher;
  begin_image_digest(hasher, *parse_state_header(image));
  hasher.update(image.subspan(kStateHeaderBytes));
  return hasher.finish();
}

void ImageHasher::next() {
  const std::size_t begin = hashed() * kHashChunkBytes;
  const ByteView chunk = image_.subspan(begin, std::min(kHashChunkBytes, image_.size() - begin));
  const bool first = leaves_.empty();
  leaves_.push_back(chunk_digest(chunk));
  // What is no image has no digest: finish() says so.
  if (first)
    if (const auto header = parse_state_header(image_); header.ok()) begin_image_digest(digest_, *header);
  digest_.update(first ? chunk.subspan(std::min(kStateHeaderBytes, chunk.size())) : chunk);
}

Result<ImageHasher::Hashes> ImageHasher::finish() {
  SHOAL_ASSIGN(const StateHeader header, parse_state_header(image_));
  return Hashes{header, digest_.finish(), tree_root(image_.size(), leaves_)};
}

void begin_from_seed(StageExecutor& executor) {
  Arena& arena = executor.arena();
  const StageSpec& spec = executor.spec();
  if (arena.size() == parameter_count(spec)) initialise(spec, arena.span(ArenaRole::kCurrent));
  arena.push(ArenaRole::kCurrent);
  arena.copy(ArenaRole::kCurrent, ArenaRole::kAnchor);
}

void write_state_header(const StateHeader& header, std::uint8_t* at) {
  std::memcpy(at, kMagic.data(), kMagic.size());
  at[8] = static_cast<std::uint8_t>(header.rule);
  at[9] = header.roles;
  put_le(at + 10, header.stage.value);
  put_le(at + 16, header.version.value);
  put_le(at + 24, static_cast<std::uint64_t>(header.tag));
  put_le(at + 32, header.floats);
}

Buffer begin_state_image(const StateHeader& header) {
  Buffer buffer(kStateHeaderBytes + (1u + header.roles) * header.floats * sizeof(float));
  write_state_header(header, buffer.data());
  return buffer;
}

Bytes make_state_image(StageExecutor& executor, const OuterRule& rule, Version version) {
  Arena& arena = executor.arena();
  const std::vector<ArenaRole> roles = rule.shared_roles();
  const std::size_t array_bytes = arena.size() * sizeof(float);
  Buffer buffer = begin_state_image({.rule = rule.id(),
                                     .roles = static_cast<std::uint8_t>(roles.size()),
                                     .stage = executor.spec().stage,
                                     .version = version,
                                     .tag = arena.tag(ArenaRole::kAnchor),
                                     .floats = arena.size()});
  std::uint8_t* at = buffer.data() + kStateHeaderBytes;
  std::memcpy(at, read_role(arena, ArenaRole::kAnchor).data(), array_bytes);
  for (const ArenaRole role : roles) std::memcpy(at += array_bytes, read_role(arena, role).data(), array_bytes);
  return std::move(buffer).freeze();
}

namespace {

void write_shared(Arena& arena, ByteView image, const StateHeader& header, const OuterRule& rule) {
  const std::vector<ArenaRole> roles = rule.shared_roles();
  for (std::size_t i = 0; i < header.roles; ++i) {  // the first image has none: they are zero
    read_array(image, i + 1, header.floats, arena.span(roles[i]));
    arena.push(roles[i]);
  }
  read_array(image, 0, header.floats, arena.span(ArenaRole::kAnchor));
  arena.tag(ArenaRole::kAnchor) = header.tag;
  arena.push(ArenaRole::kAnchor);
}

}  // namespace

Result<StateHeader> load_state_image(StageExecutor& executor, ByteView image, StateLoad load,
                                     const std::function<const OuterRule*(RuleId)>& rule_of) {
  SHOAL_ASSIGN(const StateHeader header, parse_state_header(image));
  const OuterRule* rule = rule_of(header.rule);
  Arena& arena = executor.arena();
  SHOAL_TRY(check_arrays(image, header, arena.size(), rule, executor.spec().stage));
  if (load == StateLoad::kFresh) {
    if (executor.unsettled_at_other() != 0) return make_error(ErrorCode::kBusy, "entries are not settled yet");
    for (const ArenaRole role : {ArenaRole::kMoment1, ArenaRole::kMoment2, ArenaRole::kOuterMomentum})
      zero_role(arena, role);
    write_shared(arena, image, header, *rule);
    // A flip and not a write in place: graphs that read the parameters stay valid at their own stamp.
    executor.begin_write();
    arena.copy(ArenaRole::kAnchor, ArenaRole::kOther);
    executor.flip();
    return header;
  }
  if (rule->every_step()) return make_error(ErrorCode::kUnsupported, "a late member of a step joins afresh");
  if (load == StateLoad::kShiftFromAnchor) arena.move(ArenaRole::kAnchor, ArenaRole::kSnapshot);
  write_shared(arena, image, header, *rule);
  subtract_roles(arena, ArenaRole::kAnchor, ArenaRole::kSnapshot, ArenaRole::kCandidateShift);
  executor.set_shift();
  for (const ArenaRole role : rule->candidate_roles()) arena.release(role);
  for (const ArenaRole role : {ArenaRole::kCandidate, ArenaRole::kSnapshot}) arena.release(role);
  return header;
}

}  // namespace shoal
