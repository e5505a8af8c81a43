#include "runtime/plan/codec_price.h"

#include <algorithm>

namespace shoal {
namespace {

bool has(const EdgeCodecs& direction, CodecId codec) {
  return std::find(direction.codecs.begin(), direction.codecs.end(), codec) != direction.codecs.end();
}

bool is_all(const EdgeCodecs& direction, CodecId codec) {
  return std::all_of(direction.codecs.begin(), direction.codecs.end(),
                     [&](const Auto<CodecId>& one) { return one == codec; });
}

// "int2", "aq2 and int2".
std::string dear_codecs(const WireSection& wire) {
  std::string names;
  for (const CodecId codec : {CodecId::kAq2, CodecId::kInt2})
    if (has(wire.forward, codec) || has(wire.backward, codec))
      names += (names.empty() ? "" : " and ") + std::string(kCodecNames[static_cast<std::size_t>(codec)]);
  return names;
}

// What was seen of these, or of the nearest.
std::string seen(const WireSection& wire) {
  if (is_all(wire.forward, CodecId::kAq2) && is_all(wire.backward, CodecId::kInt2))
    return "aq2 forward with int2 backward cost 9 % of the loss";
  if (has(wire.forward, CodecId::kAq2)) return "aq2 forward with int2 backward cost 9 % of the loss, int2 20 %";
  return "int2 cost 20 % of the loss";
}

}  // namespace

std::optional<std::string> codec_warning(const RunConfig& config) {
  if (config.pipeline.stages < 2 || config.executor.kind != ExecutorKind::kTorch) return std::nullopt;
  const std::string dear = dear_codecs(config.wire);
  if (dear.empty()) return std::nullopt;
  return "[wire] has " + dear + ". In tests outside of this project, which has not repeated them, " +
         seen(config.wire) +
         "; what each direction has of that is not known. HINT: [wire] forward = \"int8\" and backward = \"int8\" (or "
         "forward = \"aq4\") cost nothing there, int4 0.8 %";
}

}  // namespace shoal
