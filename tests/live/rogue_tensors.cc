#include "tests/live/rogue_tensors.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "compression/codec.h"
#include "stages/host_coder.h"
#include "sync/payload.h"

namespace shoal {
namespace {

Buffer filled(std::size_t count, float value) {
  Buffer buffer(count * sizeof(float));
  std::ranges::fill(buffer.as<float>(), value);
  return buffer;
}

Bytes raw(const HostTensor& tensor, TensorRole role) {
  auto frame = codec_for(CodecId::kRaw).encode(tensor.view(), role);
  SHOAL_CHECK(frame.ok());
  return *std::move(frame);
}

}  // namespace

Result<std::unique_ptr<RogueTensors>> RogueTensors::of(std::string_view manifest, StageId stage) {
  SHOAL_ASSIGN(RunConfig config, parse_manifest(manifest));
  SHOAL_ASSIGN(const auto stages,
               split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage));
  if (stage.value >= stages.size()) return make_error(ErrorCode::kInput, "the run has no such stage");
  const std::size_t parameters = (std::size_t{config.executor.state_mib} << 20) / sizeof(float);
  return std::unique_ptr<RogueTensors>(new RogueTensors(std::move(config), stages[stage.value], parameters));
}

Shape RogueTensors::between_stages() const {
  return {config_.data.sequences, config_.model.positions, config_.model.wire_width()};
}

HostTensor RogueTensors::tokens() const {
  const Shape shape = {config_.data.sequences, config_.model.positions + 1};  // (B, T + 1)
  Buffer zeros(static_cast<std::size_t>(element_count(shape)) * size_of(config_.token_dtype()));
  return make_host_tensor(config_.token_dtype(), shape, std::move(zeros));
}

std::vector<Bytes> RogueTensors::forward(const MicrobatchId& microbatch) {
  const ForwardInput input{.entry = ++entries_, .microbatch = microbatch, .tokens = tokens()};
  HostCoder coder;
  SHOAL_CHECK(executor_.forward(input, coder).ok());
  executor_.drop(entries_);
  return {raw(input.tokens, TensorRole::kTokens), raw(coder.output(), TensorRole::kActivation)};
}

Result<RogueTensors::Answer> RogueTensors::answer(const MicrobatchId& microbatch, const std::vector<Bytes>& frames) {
  if (frames.size() != 2) return make_error(ErrorCode::kMalformed, "two frames were to come");
  ForwardInput input{.entry = ++entries_, .microbatch = microbatch, .tokens = {}};
  SHOAL_ASSIGN(input.tokens, decode_tensor(frames[0].view(), config_.token_dtype(), tokens().shape));
  SHOAL_ASSIGN(HostTensor activation, decode_tensor(frames[1].view(), DType::kF32, between_stages()));
  HostCoder down(std::move(activation)), up;
  SHOAL_ASSIGN(const ForwardOutput output, executor_.forward(input, down));
  SHOAL_TRY(executor_.backward_input(entries_, up));
  SHOAL_TRY(executor_.backward_weights(entries_, WindowSlot::kA));
  executor_.settle(entries_);
  return Answer{{raw(up.output(), TensorRole::kGradient)}, output.loss_sum, output.targets};
}

std::vector<Bytes> RogueTensors::gradient(float value) const {
  const Shape shape = between_stages();
  return {raw(make_host_tensor(DType::kF32, shape, filled(static_cast<std::size_t>(element_count(shape)), value)),
              TensorRole::kGradient)};
}

std::vector<Bytes> RogueTensors::round_part(std::size_t members, std::size_t index, float value) {
  const PartRange range = part_range(executor_.arena().size(), members, index);
  if (range.size() == 0) return {};
  return {std::move(filled(range.size(), value)).freeze()};
}

}  // namespace shoal
