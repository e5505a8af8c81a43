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
  std::uint32_t boundary = 0, table = 0;
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
    config.model.boundary = shaped.boundary;
    config.model.boundary_table = shaped.table;
    if (shaped.boundary > 0) config.model.cuts = {2, 4};
    config.data.sequences = 16;
    config.pipeline.stages = 3;
    config.pipeline.layers_per_stage = {2, 2, 2};
    config.compute.dtype = shaped.compute;
    return config;
  }
  static StageSpec stage_of(const RunConfig& config, std::uint16_t stage) {
    return split_model(config.model_spec(), 3, config.pipeline.layers_per_stage)->at(stage);
  }
  static HostTensor zeros(const Shape& shape, DType dtype) {
    return {dtype, shape, Buffer(static_cast<std::size_t>(element_count(shape)) * size_of(dtype)).freeze()};
  }
  // Bytes beyond what was there: behind a forward, and at most until the end of its backward.
  struct Taken {
    double kept = 0, most = 0;
  };
  static Taken taken_by_a_pass(const RunConfig& config, const StageSpec& spec) {
    static CountedMemory memory(c10::GetAllocator(c10::kCPU));  // an allocator lives as long as its tensors
    c10::SetAllocator(c10::kCPU, &memory, 1);
    const auto executor = *make_torch_executor(
        spec, {.device = "cpu", .compute = config.compute.dtype, .recompute = config.compute.recompute});
    initialise(spec, executor->arena().span(ArenaRole::kCurrent));
    executor->arena().push(ArenaRole::kCurrent);
    const HostTensor tokens = zeros({config.data.sequences, 65}, DType::kU8),
                     activation = zeros({config.data.sequences, 64, spec.model.wire_width()}, DType::kF32);
    Taken taken;
    for (const EntrySerial serial : {1, 2}) {  // the first makes the copies of the weights
      const double before = CountedMemory::take().first;
      EXPECT_TRUE(pass_forward(*executor, {serial, {}, tokens}, spec.is_first() ? HostTensor() : activation).ok());
      taken.kept = CountedMemory::take().first - before;
      EXPECT_TRUE(pass_backward(*executor, serial, spec.is_last() ? HostTensor() : activation, WindowSlot::kA).ok());
      taken.most = CountedMemory::take().second - before;
      executor->settle(serial);
    }
    return taken;
  }
  // The head's gradient as the loss makes it.
  static double head_bytes(const StageSpec& spec) { return spec.is_last() ? 4.0 * 256 * 128 : 0; }
};

TEST_P(MemoryTest, AGraphTakesWhatItIsPlannedToTake) {
  const auto& [shaped, stage] = GetParam();
  const RunConfig config = config_of(shaped);
  const StageSpec spec = stage_of(config, stage);
  const StageMemory planned = stage_memory(config, spec);
  const Taken taken = taken_by_a_pass(config, spec);
  const auto graph = static_cast<double>(planned.graph), gradients = static_cast<double>(planned.gradients);
  EXPECT_NEAR(taken.kept, graph + head_bytes(spec), (spec.is_last() ? 0.05 : 0.02) * graph);
  EXPECT_LE(taken.most,
            std::max(graph, gradients) + head_bytes(spec) + static_cast<double>(planned.passing) + 0.05 * graph);
  EXPECT_GE(taken.most, graph);
}

// Few tokens, so that the gradients of a layer weigh as much as its graph.
TEST_P(MemoryTest, LayerByLayerThePeakIsThePlannedOne) {
  const auto& [shaped, stage] = GetParam();
  RunConfig config = config_of(shaped);
  config.compute.recompute = Recompute::kBlock;
  config.data.sequences = 3;
  const StageSpec spec = stage_of(config, stage);
  const StageMemory planned = stage_memory(config, spec);
  const Taken taken = taken_by_a_pass(config, spec);
  const auto graph = static_cast<double>(planned.graph), inputs = static_cast<double>(planned.inputs);
  const double both = graph + static_cast<double>(planned.beside_graph);
  EXPECT_LE(taken.most, inputs + std::max(both, static_cast<double>(planned.gradients)) + head_bytes(spec) +
                            static_cast<double>(planned.passing) + 0.05 * graph);
  // Some of a cut's rows in bf16 are gone before the gradient of a layer's matrix is there.
  const bool rows_go = spec.model.boundary > 0 && config.compute.dtype == ComputeType::kBf16;
  EXPECT_GE(taken.most, (rows_go ? 0.995 : 1) * (inputs + both));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, MemoryTest,
    testing::Combine(
        testing::Values(Shaped{"gpt2", ModelFamily::kGpt2, ComputeType::kFp32},
                        Shaped{.name = "gpt2_boundary",
                               .family = ModelFamily::kGpt2,
                               .compute = ComputeType::kFp32,
                               .boundary = 16,
                               .table = 64},
                        Shaped{.name = "llama_boundary_bf16",
                               .family = ModelFamily::kLlama,
                               .compute = ComputeType::kBf16,
                               .inner = 256,
                               .boundary = 16,
                               .table = 128},
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
