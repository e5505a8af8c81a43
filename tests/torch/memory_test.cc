// What a pass has in memory, counted at the tensor library's allocator, beside what is planned with
// (runtime/plan/stage_memory.h).
#include <c10/core/Allocator.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "runtime/plan/stage_memory.h"
#include "stages/torch_executor.h"
#include "tests/stages/host_passes.h"

namespace shoal {
namespace {

class CountedMemory final : public c10::Allocator {
 public:
  explicit CountedMemory(c10::Allocator* beneath) : beneath_(beneath) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr memory = beneath_->allocate(bytes);
    void* const data = memory.get();
    if (data == nullptr) return memory;
    const std::lock_guard lock(mutex_);
    held_[data] = {bytes, std::move(memory)};
    live_ += bytes;
    most_ = std::max(most_, live_);
    return {data, data, &give_back, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { beneath_->copy_data(to, from, bytes); }

  // What lives now, and the most since the last call.
  static std::pair<double, double> take() {
    const std::lock_guard lock(mutex_);
    return {static_cast<double>(live_), static_cast<double>(std::exchange(most_, live_))};
  }

 private:
  static void give_back(void* data) {
    const std::lock_guard lock(mutex_);
    const auto held = held_.find(data);
    live_ -= held->second.first;
    held_.erase(held);
  }
  static inline std::mutex mutex_;
  static inline std::map<void*, std::pair<std::size_t, c10::DataPtr>> held_;
  static inline std::size_t live_ = 0, most_ = 0;
  c10::Allocator* beneath_;
};

struct Shaped {
  const char* name;
  ModelFamily family;
  ComputeType compute;
  std::uint32_t kv_heads = 0, inner = 0, head_width = 0;
  AttentionExtras extras = AttentionExtras::kNone;
};

class MemoryTest : public testing::TestWithParam<std::tuple<Shaped, std::uint16_t>> {
 protected:
  static RunConfig config_of(const Shaped& shaped) {
    RunConfig config;
    config.model = {{.layers = 6,
                     .dim = 128,
                     .heads = 4,
                     .positions = 64,
                     .vocabulary = 256,
                     .family = shaped.family,
                     .kv_heads = shaped.kv_heads,
                     .head_width = shaped.head_width,
                     .inner = shaped.inner,
                     .extras = shaped.extras},
                    {},
                    {}};
    config.data.sequences = 16;
    config.pipeline.stages = 3;
    config.pipeline.layers_per_stage = {2, 2, 2};
    config.compute.dtype = shaped.compute;
    return config;
  }
  static HostTensor zeros(const Shape& shape, DType dtype) {
    return {dtype, shape, Buffer(static_cast<std::size_t>(element_count(shape)) * size_of(dtype)).freeze()};
  }
};

TEST_P(MemoryTest, AGraphTakesWhatItIsPlannedToTake) {
  static CountedMemory memory(c10::GetAllocator(c10::kCPU));  // an allocator lives as long as its tensors
  c10::SetAllocator(c10::kCPU, &memory, 1);
  const auto& [shaped, stage] = GetParam();
  const RunConfig config = config_of(shaped);
  const StageSpec spec = split_model(config.model_spec(), 3, config.pipeline.layers_per_stage)->at(stage);
  const StageMemory planned = stage_memory(config, spec);
  const auto executor = *make_torch_executor(spec, {.device = "cpu", .compute = shaped.compute});
  initialise(spec, executor->arena().span(ArenaRole::kCurrent));
  executor->arena().push(ArenaRole::kCurrent);
  const Shape between{16, 64, 128};
  const HostTensor tokens = zeros({16, 65}, DType::kU8), activation = zeros(between, DType::kF32);
  const auto pass = [&](EntrySerial serial) {
    const double before = CountedMemory::take().first;
    ASSERT_TRUE(pass_forward(*executor, {serial, {}, tokens}, spec.is_first() ? HostTensor() : activation).ok());
    const double kept = CountedMemory::take().first - before;
    ASSERT_TRUE(pass_backward(*executor, serial, spec.is_last() ? HostTensor() : activation, WindowSlot::kA).ok());
    const double most = CountedMemory::take().second - before;
    executor->settle(serial);
    if (serial == 1) return;  // the first makes the copies of the weights
    const auto graph = static_cast<double>(planned.graph), gradients = static_cast<double>(planned.gradients);
    const double head = spec.is_last() ? 4.0 * 256 * 128 : 0;  // its gradient as the loss makes it
    EXPECT_NEAR(kept, graph + head, (spec.is_last() ? 0.05 : 0.02) * graph);
    EXPECT_LE(most, std::max(graph, gradients) + head + static_cast<double>(planned.passing) + 0.05 * graph);
    EXPECT_GE(most, graph);
  };
  pass(1);
  pass(2);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, MemoryTest,
    testing::Combine(
        testing::Values(Shaped{"gpt2", ModelFamily::kGpt2, ComputeType::kFp32},
                        Shaped{"gpt2_bf16", ModelFamily::kGpt2, ComputeType::kBf16},
                        Shaped{"gpt2_wide", ModelFamily::kGpt2, ComputeType::kFp32, 0, 1024},
                        Shaped{"llama", ModelFamily::kLlama, ComputeType::kFp32, 0, 256},
                        Shaped{"llama_bf16", ModelFamily::kLlama, ComputeType::kBf16, 0, 256},
                        Shaped{"grouped", ModelFamily::kLlama, ComputeType::kFp32, 1, 512},
                        Shaped{"wide_heads", ModelFamily::kLlama, ComputeType::kBf16, 2, 256, 64},
                        Shaped{"biased", ModelFamily::kLlama, ComputeType::kFp32, 0, 0, 0, AttentionExtras::kQkvBias},
                        Shaped{"normed", ModelFamily::kLlama, ComputeType::kFp32, 2, 256, 0, AttentionExtras::kQkNorm},
                        Shaped{"normed_bf16", ModelFamily::kLlama, ComputeType::kBf16, 2, 256, 0,
                               AttentionExtras::kQkNorm}),
        testing::Values(std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{2})),
    [](const auto& info) {
      return std::string(std::get<0>(info.param).name) + "_" + std::to_string(std::get<1>(info.param));
    });

}  // namespace
}  // namespace shoal
