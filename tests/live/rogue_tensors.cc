#include "tests/live/rogue_tensors.h"

#include <algorithm>

#include "common/check.h"
#include "sync/payload.h"

namespace shoal {
namespace {

Bytes filled(std::size_t count, float value) {
  Buffer buffer(count * sizeof(float));
  std::ranges::fill(buffer.as<float>(), value);
  return std::move(buffer).freeze();
}

Bytes raw(DType dtype, Shape shape, TensorRole role, Bytes values) {
  auto frame = codec_for(CodecId::kRaw).encode({dtype, std::move(shape), values.view()}, role);
  SHOAL_CHECK(frame.ok());
  return *std::move(frame);
}

}  // namespace

Result<RogueTensors> RogueTensors::of(std::string_view manifest) {
  SHOAL_ASSIGN(RunConfig config, parse_manifest(manifest));
  SHOAL_ASSIGN(auto stages,
               split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage));
  return RogueTensors(std::move(config), std::move(stages));
}

// (B, T, d)
Bytes RogueTensors::between_stages(TensorRole role, float value) const {
  const Shape shape = {config_.data.sequences, config_.model.positions, config_.model.dim};
  return raw(DType::kF32, shape, role, filled(static_cast<std::size_t>(element_count(shape)), value));
}

std::vector<Bytes> RogueTensors::forward(StageId to, float value) const {
  const Shape shape = {config_.data.sequences, config_.model.positions + 1};  // (B, T + 1)
  const std::size_t bytes = static_cast<std::size_t>(element_count(shape)) * size_of(config_.token_dtype());
  std::vector<Bytes> frames = {raw(config_.token_dtype(), shape, TensorRole::kTokens,
                                   Bytes::from_vector(std::vector<std::uint8_t>(bytes)))};
  if (to.value > 0) frames.push_back(between_stages(TensorRole::kActivation, value));
  return frames;
}

std::vector<Bytes> RogueTensors::gradient(float value) const {
  return {between_stages(TensorRole::kGradient, value)};
}

std::vector<Bytes> RogueTensors::round_part(StageId stage, std::size_t members, std::size_t index, float value) const {
  if (stage.value >= stages_.size()) return {};
  const PartRange range = part_range(parameter_count(stages_[stage.value]), members, index);
  if (range.size() == 0) return {};
  return {filled(range.size(), value)};
}

}  // namespace shoal
