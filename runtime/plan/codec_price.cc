#include "runtime/plan/codec_price.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace shoal {
namespace {

// What a pair cost on all edges, of those that cost more than the seeds differed by; the dearest first.
struct Seen {
  CodecId forward, backward;
  std::string_view cost;
};
constexpr Seen kSeen[] = {{CodecId::kInt2, CodecId::kInt2, "35 %"},
                          {CodecId::kRaw, CodecId::kInt2, "15 %"},
                          {CodecId::kInt2, CodecId::kInt4, "12 %"},
                          {CodecId::kAq2, CodecId::kInt4, "4 %"},
                          {CodecId::kInt4Hadamard, CodecId::kInt4Hadamard, "3 %"},
                          {CodecId::kInt4, CodecId::kInt4, "3 %"},
                          {CodecId::kAq2, CodecId::kInt8, "2 %"}};

using Edge = std::pair<CodecId, CodecId>;  // forward, backward

std::string name_of(CodecId codec) { return std::string(kCodecNames[static_cast<std::size_t>(codec)]); }

std::string text_of(CodecId forward, CodecId backward) {
  if (forward == backward) return name_of(forward) + " both ways";
  return name_of(forward) + " forward with " + name_of(backward) + " backward";
}

bool has_four_bits(CodecId codec) { return codec == CodecId::kInt4 || codec == CodecId::kInt4Hadamard; }

// Two bits either way, or four both ways.
bool is_dear(const Edge& edge) {
  const auto& [forward, backward] = edge;
  return forward == CodecId::kInt2 || forward == CodecId::kAq2 || backward == CodecId::kInt2 ||
         (has_four_bits(forward) && has_four_bits(backward));
}

// Each once, in the order of the edges. "auto" is no coarse codec.
std::vector<Edge> dear_edges(const RunConfig& config) {
  std::vector<Edge> dear;
  for (std::uint16_t stage = 0; stage + 1 < config.pipeline.stages; ++stage) {
    const Edge edge{config.wire.forward.at(StageId(stage)).or_else(CodecId::kRaw),
                    config.wire.backward.at(StageId(stage)).or_else(CodecId::kRaw)};
    if (is_dear(edge) && std::find(dear.begin(), dear.end(), edge) == dear.end()) dear.push_back(edge);
  }
  return dear;
}

bool was_seen(const Edge& edge) {
  return std::any_of(std::begin(kSeen), std::end(kSeen), [&](const Seen& seen) {
    return edge == Edge{seen.forward, seen.backward};
  });
}

// Whether what `seen` cost says something of this edge: it is the same pair, or, where that was not measured, has one
// codec of it in its direction.
bool tells_of(const Seen& seen, const Edge& edge) {
  if (was_seen(edge)) return edge == Edge{seen.forward, seen.backward};
  return edge.first == seen.forward || edge.second == seen.backward;
}

}  // namespace

std::optional<std::string> codec_warning(const RunConfig& config) {
  if (config.executor.kind != ExecutorKind::kTorch) return std::nullopt;
  const std::vector<Edge> dear = dear_edges(config);
  if (dear.empty()) return std::nullopt;
  std::string chosen, costs;
  for (const Edge& edge : dear) chosen += (chosen.empty() ? "" : ", ") + text_of(edge.first, edge.second);
  for (const Seen& seen : kSeen)
    if (std::any_of(dear.begin(), dear.end(), [&](const Edge& edge) { return tells_of(seen, edge); }))
      costs += (costs.empty() ? "" : ", ") + text_of(seen.forward, seen.backward) + " cost " + std::string(seen.cost);
  return "[wire] has " + chosen + ". In a small model of four stages " + costs +
         " of the loss (docs/RESULTS.md). HINT: int8 both ways, and aq4 forward with int8 backward, cost nothing there "
         "that seeds do not; bench/grid convergence measures it on a text of yours";
}

}  // namespace shoal
