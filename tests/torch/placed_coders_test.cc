// Coders of tensors in the memory of a GPU beside those of the host: the same frames, values, norms and refusals; and
// the product's executor between them, forward and backward. The CPU has the memory and judges the kernels.
#include <c10/core/Allocator.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/edge/hop_coders.h"
#include "stages/torch_executor.h"
#include "tests/compression/tensors.h"
#include "tests/kernels/cuda_on_host/host_grid.h"
#include "tests/stages/chain.h"

namespace shoal {
namespace {

constexpr Place kThere{Place::Kind::kCuda};

std::string name_in_test(CodecId codec) {
  std::string name(codec_for(codec).name());
  std::ranges::replace(name, '-', '_');
  return name;
}

// Memory of the device, which a copy from the host has written once: kernels read nothing that nobody wrote.
void* take_there(std::size_t bytes) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)), cudaSuccess);
  const std::vector<std::uint8_t> zeros(bytes);
  EXPECT_EQ(cudaMemcpy(memory, zeros.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  return memory;
}
void give_back_there(void* memory) { EXPECT_EQ(cudaFree(memory), cudaSuccess); }

class SpaceThere {
 public:
  explicit SpaceThere(Shape shape)
      : shape_(std::move(shape)),
        bytes_(static_cast<std::size_t>(element_count(shape_)) * sizeof(float)),
        memory_(take_there(bytes_)) {}
  ~SpaceThere() { give_back_there(memory_); }
  SpaceThere(const SpaceThere&) = delete;
  SpaceThere& operator=(const SpaceThere&) = delete;
  PlacedSpace space() const { return {DType::kF32, shape_, {static_cast<std::uint8_t*>(memory_), bytes_}, kThere}; }

 private:
  Shape shape_;
  std::size_t bytes_;
  void* memory_;
};

class PlacedCodecTest : public ::testing::TestWithParam<std::tuple<CodecId, cuda_on_host::Order>> {
 protected:
  void SetUp() override { cuda_on_host::run_in_order(std::get<1>(GetParam())); }
  void TearDown() override { cuda_on_host::run_in_order(cuda_on_host::Order::kForward); }
  const Codec& codec = codec_for(std::get<0>(GetParam()));
};

TEST_P(PlacedCodecTest, GivesTheSameFrameValuesAndNormThere) {
  for (const Shape& shape : {Shape{1}, Shape{3, 5, 7}, Shape{2, 64, 33}, Shape{1, 129}, Shape{4096}}) {
    const HostTensor tensor = normal_tensor(shape, 3);
    const HostTensor base = normal_tensor(shape, 4);
    const BaseView known{base.view(), 9};
    const BaseView* view = is_delta(codec.id()) ? &known : nullptr;
    const SpaceThere there(shape), decoded(shape);
    ASSERT_TRUE(put(tensor.bytes.view(), there.space()).ok());
    EXPECT_EQ(*root_mean_square(there.space().filled()), root_mean_square(tensor.f32()));
    const Result<Bytes> expected = codec.encode(tensor.view(), TensorRole::kGradient, view, 11);
    const Result<Bytes> frame = codec.encode(there.space().filled(), TensorRole::kGradient, view, 11);
    ASSERT_TRUE(expected.ok() && frame.ok()) << (frame.ok() ? "" : frame.error().message);
    EXPECT_EQ(bytes_in(*frame), bytes_in(*expected));
    Buffer here(tensor.bytes.size());
    ASSERT_TRUE(codec.decode(*expected, view, here.view()).ok());
    const Status status = codec.decode(*expected, view, decoded.space());
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(bytes_in(fetched(decoded.space().filled())->bytes), bytes_in(here.view()));
  }
}

TEST_P(PlacedCodecTest, RefusesThereWhatItRefusesHere) {
  if (codec.id() == CodecId::kRaw || is_delta(codec.id())) GTEST_SKIP() << "their values are looked at on the host";
  const Shape shape{2, 100};
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const HostTensor tensor = with_value(normal_tensor(shape, 5), 77, bad);
    const SpaceThere there(shape);
    ASSERT_TRUE(put(tensor.bytes.view(), there.space()).ok());
    const Result<Bytes> here = codec.encode(tensor.view(), TensorRole::kActivation);
    const Result<Bytes> refused = codec.encode(there.space().filled(), TensorRole::kActivation);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.code(), ErrorCode::kNonFinite);
    EXPECT_EQ(refused.error().message, here.error().message);
  }
  const Bytes good = *codec.encode(normal_tensor(shape, 6).view(), TensorRole::kActivation);
  std::vector<std::uint8_t> frame = bytes_in(good);
  for (std::size_t at = 64; at < frame.size(); ++at) frame[at] = 0xff;
  frame = resealed(frame);
  const SpaceThere there(shape);
  Buffer memory(200 * sizeof(float));
  const Status here = codec.decode(frame, nullptr, memory.view()),
               refused = codec.decode(frame, nullptr, there.space());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, here.error().code);
  EXPECT_EQ(refused.error().message, here.error().message);
}

INSTANTIATE_TEST_SUITE_P(All, PlacedCodecTest,
                         ::testing::Combine(::testing::ValuesIn(kCodecs), ::testing::ValuesIn(cuda_on_host::kOrders)),
                         [](const auto& info) {
                           return name_in_test(std::get<0>(info.param)) + "_" +
                                  std::to_string(static_cast<int>(std::get<1>(info.param)));
                         });

// What the tensor library makes lies in the device's memory then.
class MemoryThere final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const memory = bytes == 0 ? nullptr : take_there(bytes);
    return {memory, memory, &give_back, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }

 private:
  static void give_back(void* memory) {
    if (memory != nullptr) give_back_there(memory);
  }
};

struct Passed {
  std::vector<Bytes> frames;  // forward, then backward
  std::vector<Commitment> commitments;
  std::vector<std::vector<float>> gradients;
  double loss = 0;
};

ExecutorMaker maker(bool as_cuda) {
  return {"", [as_cuda](const StageSpec& spec) -> std::unique_ptr<StageExecutor> {
            return std::move(*make_torch_executor(spec, {.device = "cpu", .as_cuda = as_cuda}));
          }};
}

// One microbatch through three stages, in frames.
Passed pass(bool as_cuda, CodecId codec) {
  Chain chain(maker(as_cuda), contract_model(), 3);
  Passed passed;
  const MicrobatchId id = microbatch(1);
  const Bytes tokens = *codec_for(CodecId::kRaw).encode(contract_tokens(1).view(), TensorRole::kTokens);
  const NormGuard::Bound scales{1e-3, 1e6};
  Bytes frame;
  std::vector<Base> bases(chain.size());
  for (std::size_t k = 0; k < chain.size(); ++k) {
    ForwardBases edges;
    if (k > 0) edges.above = delta_codecs_for(codec);
    if (k + 1 < chain.size()) edges.below = delta_codecs_for(codec);
    const CodecId below = is_delta(codec) ? CodecId::kRaw : codec;
    ActivationCoder coder(frame, edges, below, 5 + k, k == 1 ? std::optional(scales) : std::nullopt);
    const auto out = chain.at(k).forward({1, id, contract_tokens(1)}, coder);
    EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
    if (!out.ok()) return passed;
    passed.commitments.push_back(coder.commitment(tokens, out->stamp));
    passed.loss = out->loss_sum;
    frame = coder.made().key;
    if (k + 1 < chain.size()) passed.frames.push_back(frame);
  }
  frame = {};
  for (std::size_t k = chain.size(); k-- > 0;) {
    GradientCoder coder(frame, is_delta(codec) ? CodecId::kInt8 : codec, 7 + k, std::nullopt);
    const Status handed_on = chain.at(k).backward_input(1, coder);
    EXPECT_TRUE(handed_on.ok()) << (handed_on.ok() ? "" : handed_on.error().message);
    const auto out = chain.at(k).backward_weights(1, kA);
    if (!handed_on.ok() || !out.ok()) return passed;
    passed.commitments.push_back(coder.commitment(out->stamp));
    frame = coder.made();
    if (k > 0) passed.frames.push_back(frame);
    passed.gradients.push_back(chain.read(k, ArenaRole::kAccumulatorA));
  }
  return passed;
}

class PlacedPassTest : public ::testing::TestWithParam<CodecId> {};

TEST_P(PlacedPassTest, TheSameTokensGiveTheSameBitsThroughBoth) {
  const Passed here = pass(false, GetParam());
  static MemoryThere memory;  // an allocator lives as long as its tensors
  c10::Allocator* const before = c10::GetAllocator(c10::kCPU);
  c10::SetAllocator(c10::kCPU, &memory, 1);
  const Passed there = pass(true, GetParam());
  c10::SetAllocator(c10::kCPU, before, 1);
  ASSERT_EQ(there.frames.size(), 4u);
  ASSERT_EQ(here.frames.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(bytes_in(there.frames[i]), bytes_in(here.frames[i])) << i;
  EXPECT_EQ(there.gradients, here.gradients);
  EXPECT_EQ(there.loss, here.loss);
  EXPECT_EQ(there.commitments, here.commitments);
  EXPECT_NE(here.commitments[0], here.commitments[1]);
}

INSTANTIATE_TEST_SUITE_P(Codecs, PlacedPassTest, ::testing::ValuesIn(kCodecs),
                         [](const auto& info) { return name_in_test(info.param); });

}  // namespace
}  // namespace shoal
