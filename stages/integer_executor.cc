#include "stages/integer_executor.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "common/check.h"
#include "stages/adamw.h"

namespace shoal {
namespace {

constexpr std::size_t kPatternFloats = 64;
using Pattern = std::array<float, kPatternFloats>;

Pattern pattern_of(std::uint64_t checksum) {
  Pattern pattern;
  for (std::size_t i = 0; i < kPatternFloats; ++i) {
    pattern[i] = static_cast<float>(static_cast<int>(mix64(checksum, i) % 253) - 126);
  }
  pattern[0] = 127;
  return pattern;
}

std::uint64_t token_checksum(const HostTensor& tokens) {
  std::uint64_t sum = 0;
  const ByteView bytes = tokens.bytes.view();
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
    sum = mix64(sum, word);
  }
  return sum;
}

// What leaves stages 0 .. `stages - 1` forwards, or, with `backward`, stages last .. `stage`.
std::uint64_t path_checksum(const StageSpec& spec, const StageInput& input, std::uint16_t stage, bool backward) {
  std::uint64_t sum = mix64(count_tag(input.microbatch), token_checksum(input.tokens));
  const std::uint32_t last = backward ? spec.stages - 1u : stage;
  for (std::uint32_t k = 0; k <= last; ++k) sum = mix64(sum, k);
  if (backward) {
    for (std::uint16_t k = spec.stages; k-- > stage;) sum = mix64(sum, 0x10000u + k);
  }
  return sum;
}

HostTensor patterned(const Shape& shape, std::uint64_t checksum) {
  Buffer buffer(static_cast<std::size_t>(element_count(shape)) * sizeof(float));
  const std::span<float> values = buffer.as<float>();
  const Pattern pattern = pattern_of(checksum);
  for (std::size_t i = 0; i < values.size(); i += kPatternFloats) {
    std::copy_n(pattern.begin(), std::min(kPatternFloats, values.size() - i),
                values.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return make_host_tensor(DType::kF32, shape, std::move(buffer));
}

HostTensor tensor_of(const StageSpec& spec, const StageInput& input, std::uint64_t checksum) {
  return patterned({sequences_of(input), spec.model.positions, spec.model.wire_width()}, checksum);
}

}  // namespace

// Stamp s lives in buffer s % 2 (stages/executor.h).
struct IntegerExecutor::BufferGraph final : Graph {
  explicit BufferGraph(std::uint64_t buffer) : buffer(buffer) {}
  std::uint64_t buffer;
};

IntegerGradient integer_gradient(const MicrobatchId& microbatch, StageId stage, WeightStamp stamp) {
  IntegerGradient gradient;
  const std::uint64_t seed = mix64(mix64(count_tag(microbatch), stage.value), stamp);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = static_cast<float>(static_cast<int>(mix64(seed, i) % 129) - 64);
  }
  return gradient;
}

double integer_loss(const MicrobatchId& microbatch, std::uint64_t targets) {
  return static_cast<double>(count_tag(microbatch) % 1024) / 256 * static_cast<double>(targets);
}

Status IntegerExecutor::expect(const HostTensor& tensor, std::uint64_t checksum, const StageInput& input,
                               const char* role) {
  const std::span<const float> values = tensor.f32();
  const Pattern pattern = pattern_of(checksum);
  for (std::size_t i = 0; i < values.size(); i += kPatternFloats) {
    const std::size_t count = std::min(kPatternFloats, values.size() - i);
    if (std::memcmp(values.data() + i, pattern.data(), count * sizeof(float)) == 0) continue;
    ++mismatches_;
    std::ostringstream out;
    out << "microbatch " << input.microbatch << ": " << role << " at stage " << spec().stage
        << " is not what the stages before it make of this microbatch";
    return make_error(ErrorCode::kMalformed, out.str());
  }
  return Status::success();
}

Result<WindowedExecutor::Computed> IntegerExecutor::compute(const StageInput& input, ArenaRole weights,
                                                            bool keep_graph) {
  const std::uint16_t stage = spec().stage.value;
  if (const auto before = spec().route().before)
    SHOAL_TRY(
        expect(input.activation.on_host(), path_checksum(spec(), input, before->value, false), input, "activation"));
  Computed computed;
  computed.output.targets = static_cast<std::uint64_t>(sequences_of(input)) * spec().model.positions;
  if (spec().is_last()) {
    computed.output.loss_sum = integer_loss(input.microbatch, computed.output.targets);
  } else {
    computed.activation = tensor_of(spec(), input, path_checksum(spec(), input, stage, false));
  }
  if (keep_graph)
    computed.graph = std::make_unique<BufferGraph>((stamp() + (weights == ArenaRole::kOther ? 1 : 0)) % 2);
  return computed;
}

Result<KeptTensor> IntegerExecutor::differentiate_input(Graph&, const StageInput& input, const KeptTensor& gradient) {
  const std::uint16_t stage = spec().stage.value;
  if (const auto next = spec().route().next)
    SHOAL_TRY(expect(gradient.on_host(), path_checksum(spec(), input, next->value, true), input, "gradient"));
  if (spec().is_first()) return KeptTensor{};
  return KeptTensor(tensor_of(spec(), input, path_checksum(spec(), input, stage, true)));
}

Status IntegerExecutor::differentiate_weights(Graph& graph, const StageInput& input, ArenaRole accumulator,
                                              float sign) {
  const WeightStamp made_at = stamp_in(static_cast<const BufferGraph&>(graph).buffer);
  const IntegerGradient own = integer_gradient(input.microbatch, spec().stage, made_at);
  const std::span<float> sum = arena_.span(accumulator);
  for (std::size_t i = 0; i < own.size(); ++i) sum[i] += sign * own[i];
  return Status::success();
}

Result<double> IntegerExecutor::window_norm(ArenaRole accumulator, const InnerStep& step) {
  return mean_gradient_norm(arena_.span(accumulator), step.targets);
}

void IntegerExecutor::write_step(ArenaRole accumulator, const InnerStep&, double, std::span<const float> shift) {
  const std::span<const float> current = arena_.span(ArenaRole::kCurrent), sum = arena_.span(accumulator);
  const std::span<float> other = arena_.span(ArenaRole::kOther);
  for (std::size_t i = 0; i < other.size(); ++i) other[i] = current[i] - sum[i] + (shift.empty() ? 0.0f : shift[i]);
}

void IntegerExecutor::write_shift(std::span<const float> shift) {
  const std::span<const float> current = arena_.span(ArenaRole::kCurrent);
  const std::span<float> other = arena_.span(ArenaRole::kOther);
  for (std::size_t i = 0; i < other.size(); ++i) other[i] = current[i] + shift[i];
}

void IntegerExecutor::zero(ArenaRole role) {
  const std::span<float> values = arena_.span(role);
  std::fill(values.begin(), values.end(), 0.0f);
}

// The ids up to a place are a checksum; what leaves a stage there is a pattern of it and of the stage's number, however
// the text was cut into pieces.
class IntegerExecutor::IntegerText final : public TextStage {
 public:
  explicit IntegerText(IntegerExecutor& executor) : executor_(executor) {}

  Result<HostTensor> extend(const HostTensor& tokens, FrameCoder& coder) override {
    const StageSpec& spec = executor_.spec();
    SHOAL_TRY(check_text(spec, tokens, places_));
    std::vector<std::uint64_t> seen;
    for (std::size_t i = 0; i < static_cast<std::size_t>(tokens.shape[1]); ++i)
      seen.push_back(mix64(i == 0 ? seen_ : seen.back(), id_at(tokens.bytes, tokens.dtype, i)));
    if (!spec.is_first()) SHOAL_TRY(check_activation(seen, coder));
    HostTensor logits;
    if (spec.is_last()) {
      logits = patterned({spec.model.vocabulary}, mix64(seen.back(), spec.stage.value));
    } else {
      SHOAL_TRY(coder.encode({rows(seen, spec.stage.value).view()}));
    }
    seen_ = seen.back();
    places_ += seen.size();
    return logits;
  }
  std::uint64_t places() const override { return places_; }
  std::uint64_t bytes() const override { return sizeof seen_; }

 private:
  // (1, N, values that cross), as they leave the stage of this number.
  HostTensor rows(const std::vector<std::uint64_t>& seen, std::uint32_t stage) const {
    const std::size_t width = executor_.spec().model.wire_width();
    Buffer buffer(seen.size() * width * sizeof(float));
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const HostTensor row = patterned({static_cast<std::int64_t>(width)}, mix64(seen[i], stage));
      std::ranges::copy(row.f32(), buffer.as<float>().begin() + static_cast<std::ptrdiff_t>(i * width));
    }
    return make_host_tensor(DType::kF32, {1, static_cast<std::int64_t>(seen.size()), static_cast<std::int64_t>(width)},
                            std::move(buffer));
  }
  Status check_activation(const std::vector<std::uint64_t>& seen, FrameCoder& coder) {
    const HostTensor wanted = rows(seen, executor_.spec().route().before->value);
    Buffer memory(wanted.bytes.size());
    SHOAL_TRY(coder.decode({DType::kF32, wanted.shape, {memory.data(), memory.size()}}));
    if (std::memcmp(memory.data(), wanted.bytes.data(), memory.size()) == 0) return {};
    ++executor_.mismatches_;
    return make_error(ErrorCode::kMalformed, "a text's activation is not what the stages before make of its ids");
  }

  IntegerExecutor& executor_;
  std::uint64_t seen_ = 0, places_ = 0;
};

std::unique_ptr<TextStage> IntegerExecutor::begin_text() { return std::make_unique<IntegerText>(*this); }

}  // namespace shoal
