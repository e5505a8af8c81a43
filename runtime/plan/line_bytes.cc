#include "runtime/plan/line_bytes.h"

#include <algorithm>
#include <limits>

#include "common/formatted.h"
#include "compression/codec.h"
#include "runtime/config/derived_options.h"
#include "runtime/plan/split_limits.h"
#include "stages/boundary.h"

namespace shoal {
namespace {

double frame_bytes(const RunConfig& config, const Auto<CodecId>& codec) {
  const Shape shape{config.data.sequences, config.model.positions, config.model.wire_width()};
  return static_cast<double>(codec_for(codec.or_else(CodecId::kInt8)).frame_bytes(shape, DType::kF32)) /
         static_cast<double>(config.targets_per_microbatch());
}

std::string smaller_rounds(const RunConfig& config) {
  if (traits_of(config.sync.rule).every_step)
    return "raise [sync] microbatches_per_step (now " + std::to_string(config.sync.microbatches_per_step) +
           "), or give rule = \"diloco\"";
  return "raise [sync] inner_steps (now " + std::to_string(config.sync.inner_steps) + ")" +
         (payload_codec(config) == CodecId::kInt4 ? "" : ", or give payload = \"int4\"");
}

}  // namespace

std::vector<LineBytes> line_bytes(const RunConfig& config) {
  std::vector<LineBytes> lines(config.pipeline.stages);
  for (std::uint16_t stage = 0; stage + 1 < config.pipeline.stages; ++stage) {
    LineBytes& line = lines[stage];
    line.forward = frame_bytes(config, config.wire.forward.at(StageId(stage))) +
                   static_cast<double>(size_of(config.token_dtype()));
    line.backward = frame_bytes(config, config.wire.backward.at(StageId(stage)));
    line.up += line.forward;
    line.down += line.backward;
    lines[stage + 1u].up = line.backward;
    lines[stage + 1u].down = line.forward;
  }
  return lines;
}

std::vector<double> round_payloads(const RunConfig& config) {
  std::vector<double> bytes;
  for (const std::uint64_t payload : payload_bytes(config)) {
    const Shape flat{static_cast<std::int64_t>(payload / sizeof(float))};
    bytes.push_back(static_cast<double>(codec_for(payload_codec(config)).frame_bytes(flat, DType::kF32)));
  }
  return bytes;
}

std::vector<double> round_bytes(const RunConfig& config) {
  const double replicas = std::max<double>(1, config.pipeline.replicas);
  const double tokens = static_cast<double>(config.microbatches_of_round() * config.targets_per_microbatch());
  std::vector<double> bytes = round_payloads(config);
  for (double& of_stage : bytes) of_stage *= 2 * (replicas - 1) / std::max(1.0, tokens);
  return bytes;
}

double carried_tokens(const RunConfig& config, double line, const std::vector<double>& rounds) {
  double most = 0;
  const std::vector<LineBytes> lines = line_bytes(config);
  for (std::size_t stage = 0; stage < lines.size(); ++stage)
    most = std::max(most, std::max(lines[stage].up, lines[stage].down) + (stage < rounds.size() ? rounds[stage] : 0));
  return most > 0 ? line / most : std::numeric_limits<double>::infinity();
}

std::uint32_t widest_boundary(const RunConfig& config, double line, double tokens) {
  const std::vector<double> rounds = round_bytes(config);
  RunConfig tried = config;
  std::uint32_t fits = 0, too_wide = config.model.dim + 1;
  while (too_wide - fits > 1) {
    tried.model.boundary = fits + (too_wide - fits) / 2;
    (carried_tokens(tried, line, rounds) >= tokens ? fits : too_wide) = tried.model.boundary;
  }
  return fits;
}

std::optional<std::string> round_warning(const RunConfig& config) {
  if (!has_boundary(config.model) || config.executor.kind != ExecutorKind::kTorch) return std::nullopt;
  const std::vector<LineBytes> lines = line_bytes(config);
  const std::vector<double> rounds = round_bytes(config);
  std::size_t most = 0;
  for (std::size_t stage = 1; stage < lines.size(); ++stage)
    if (rounds[stage] / lines[stage].up > rounds[most] / lines[most].up) most = stage;
  if (lines[most].up == 0 || rounds[most] <= lines[most].up) return std::nullopt;
  return formatted("a member of stage %zu sends %.4g bytes a token in rounds, and %.4g of activations and gradients: ",
                   most, rounds[most], lines[most].up) +
         "a narrower boundary would save little. HINT: " + smaller_rounds(config);
}

}  // namespace shoal
