#include "runtime/config/frames_allowed.h"

#include <algorithm>

#include "common/crypto/hash.h"

namespace shoal {
namespace {

// Raw's, but for a tensor of a few elements: a tile takes its whole bytes.
std::uint64_t frame_bytes_most(const Shape& shape) {
  std::uint64_t most = 0;
  for (const CodecId codec : kCodecs) most = std::max(most, codec_for(codec).frame_bytes(shape, DType::kF32));
  return most;
}

}  // namespace

std::uint64_t frame_bytes_allowed(const Message& message, const RunConfig& config, const StageSpec& spec,
                                  std::uint64_t part_bytes) {
  const Codec& raw = codec_for(CodecId::kRaw);
  const auto sequences = std::int64_t{config.data.sequences}, positions = std::int64_t{spec.model.positions};
  const std::uint64_t activation = frame_bytes_most({sequences, positions, std::int64_t{spec.model.wire_width()}});
  if (std::holds_alternative<Forward>(message))
    return raw.frame_bytes({sequences, positions + 1}, config.token_dtype()) + (spec.is_first() ? 0 : activation);
  if (std::holds_alternative<Gradient>(message)) return spec.is_last() ? 0 : activation;
  return std::holds_alternative<RoundPart>(message) ? part_bytes : 0;
}

bool chunk_wanted(const StateFetcher* fetcher, const PeerId& from, const Chunk& chunk, std::uint64_t frame_bytes) {
  return fetcher != nullptr && frame_bytes <= kHashChunkBytes && fetcher->asked(from, chunk);
}

}  // namespace shoal
