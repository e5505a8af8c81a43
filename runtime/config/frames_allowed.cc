#include "runtime/config/frames_allowed.h"

#include "common/hash.h"

namespace shoal {

std::uint64_t frame_bytes_allowed(const Message& message, const RunConfig& config, const StageSpec& spec,
                                  std::uint64_t part_bytes) {
  const Codec& raw = codec_for(CodecId::kRaw);
  const auto sequences = std::int64_t{config.data.sequences}, positions = std::int64_t{spec.model.positions};
  const std::uint64_t activation = raw.frame_bytes({sequences, positions, std::int64_t{spec.model.dim}}, DType::kF32);
  if (std::holds_alternative<Forward>(message))
    return raw.frame_bytes({sequences, positions + 1}, config.token_dtype()) + (spec.is_first() ? 0 : activation);
  if (std::holds_alternative<Gradient>(message)) return spec.is_last() ? 0 : activation;
  return std::holds_alternative<RoundPart>(message) ? part_bytes : 0;
}

bool chunk_wanted(const StateFetcher* fetcher, const PeerId& from, const Chunk& chunk, std::uint64_t frame_bytes) {
  return fetcher != nullptr && frame_bytes <= kHashChunkBytes && fetcher->asked(from, chunk);
}

}  // namespace shoal
