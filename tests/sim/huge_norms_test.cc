// A member that computes, and hands on tensors that are finite and absurdly large.
#include <gtest/gtest.h>

#include <utility>

#include "sim/checkers.h"
#include "sim/swarm.h"
#include "stages/integer_executor.h"
#include "tests/sim/heard_lines.h"

namespace shoal {
namespace {

// From its `honest`-th tensor on, what it hands on has this value everywhere.
class Enlarger final : public IntegerExecutor {
 public:
  Enlarger(const StageSpec& spec, std::uint64_t honest) : IntegerExecutor(spec), honest_(honest) {}

  Result<ForwardOutput> forward(const ForwardInput& input) override {
    auto output = IntegerExecutor::forward(input);
    if (output.ok()) enlarge(output->activation);
    return output;
  }
  Result<BackwardOutput> backward(EntrySerial entry, const HostTensor& gradient,
                                  std::optional<WindowSlot> window) override {
    auto output = IntegerExecutor::backward(entry, gradient, window);
    if (output.ok()) enlarge(output->gradient);
    return output;
  }

 private:
  void enlarge(HostTensor& tensor) {
    if (tensor.shape.empty() || made_++ < honest_) return;
    Buffer buffer(static_cast<std::size_t>(element_count(tensor.shape)) * sizeof(float));
    for (float& value : buffer.as<float>()) value = 1e30f;
    tensor = make_host_tensor(DType::kF32, tensor.shape, std::move(buffer));
  }
  std::uint64_t honest_, made_ = 0;
};

class HugeNormsTest : public testing::TestWithParam<std::uint16_t> {
 protected:
  // The first peer of `stage` is the liar.
  static SwarmOptions options(std::uint16_t stage) {
    SwarmOptions options;
    options.stages = 2;
    options.replicas = 2;
    options.config = small_config(RuleId::kDiloco, 2, 300);
    auto taken = std::make_shared<bool>(false);
    options.factory = [stage, taken](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
      std::unique_ptr<StageExecutor> made = std::make_unique<IntegerExecutor>(spec);
      if (spec.stage.value == stage && !std::exchange(*taken, true)) made = std::make_unique<Enlarger>(spec, 20);
      return made;
    };
    return options;
  }
};

// Stage 0 hands activations on, stage 1 gradients. Whoever gets them names the sender and asks another one.
TEST_P(HugeNormsTest, AreRefusedByNameAndTheirSenderRests) {
  const HeardLines heard;
  Swarm swarm(options(GetParam()));
  ASSERT_TRUE(swarm.run_to_end(600s));
  EXPECT_EQ(swarm.summary().committed, 300u);
  EXPECT_EQ(swarm.summary().lost, 0u);
  EXPECT_GE(heard.with("times the running mean of this edge"), 1u);
  EXPECT_GE(heard.with("are far too large again and again"), 1u);
  for (const std::string& broken : check_end(swarm)) ADD_FAILURE() << broken;
}

INSTANTIATE_TEST_SUITE_P(Stages, HugeNormsTest, testing::Values(0, 1));

}  // namespace
}  // namespace shoal
