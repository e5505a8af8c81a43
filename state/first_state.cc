#include "state/first_state.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/check.h"
#include "state/state_image.h"

namespace shoal {
namespace {

StateHeader header_of(const StageSpec& spec, std::uint64_t floats) {
  return {.rule = {}, .roles = 0, .stage = spec.stage, .version = Version(0), .tag = 0, .floats = floats};
}

std::uint64_t bytes_of_image(const StateHeader& header) { return kStateHeaderBytes + header.floats * sizeof(float); }

std::uint32_t chunks_of(std::uint64_t bytes) {
  return static_cast<std::uint32_t>((bytes + kHashChunkBytes - 1) / kHashChunkBytes);
}

}  // namespace

Result<Bytes> first_chunk(const StageSpec& spec, const WeightSource& source, std::uint32_t index) {
  const StateHeader header = header_of(spec, source.floats(spec));
  const std::uint64_t begin = index * std::uint64_t{kHashChunkBytes};
  SHOAL_CHECK_LT(begin, bytes_of_image(header));
  Buffer buffer(std::min<std::uint64_t>(kHashChunkBytes, bytes_of_image(header) - begin));
  const std::size_t front = index == 0 ? kStateHeaderBytes : 0;
  if (index == 0) write_state_header(header, buffer.data());
  static_assert(kStateHeaderBytes % sizeof(float) == 0 && kHashChunkBytes % sizeof(float) == 0);
  const std::uint64_t first = index == 0 ? 0 : (begin - kStateHeaderBytes) / sizeof(float);
  std::vector<float> values((buffer.size() - front) / sizeof(float));
  SHOAL_TRY(source.read(spec, first, values));
  if (!values.empty()) std::memcpy(buffer.data() + front, values.data(), values.size() * sizeof(float));
  return std::move(buffer).freeze();
}

Result<FirstState> measure_first_state(const StageSpec& spec, const WeightSource& source) {
  const StateHeader header = header_of(spec, source.floats(spec));
  FirstState state{.digest = {}, .root = {}, .bytes = bytes_of_image(header), .chunks = 0};
  state.chunks = chunks_of(state.bytes);
  Hasher hasher;
  begin_image_digest(hasher, header);
  std::vector<Digest> leaves;
  for (std::uint32_t index = 0; index < state.chunks; ++index) {
    SHOAL_ASSIGN(const Bytes chunk, first_chunk(spec, source, index));
    hasher.update(ByteView(chunk).subspan(index == 0 ? kStateHeaderBytes : 0));
    leaves.push_back(chunk_digest(chunk));
  }
  state.digest = hasher.finish();
  state.root = tree_root(state.bytes, leaves);
  return state;
}

Digest digest_of_first(const StageSpec& spec, std::span<const float> values) {
  Hasher hasher;
  begin_image_digest(hasher, header_of(spec, values.size()));
  hasher.update(bytes_of(values));
  return hasher.finish();
}

Bytes make_first_image(StageExecutor& executor) {
  Arena& arena = executor.arena();
  Buffer buffer = begin_state_image(header_of(executor.spec(), arena.size()));
  arena.pull(ArenaRole::kAnchor);
  std::memcpy(buffer.data() + kStateHeaderBytes, arena.span(ArenaRole::kAnchor).data(), arena.size() * sizeof(float));
  return std::move(buffer).freeze();
}

}  // namespace shoal
