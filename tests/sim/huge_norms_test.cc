// A member that computes, and hands on tensors that are finite and absurdly large.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "sim/checkers.h"
#include "sim/swarm.h"
#include "stages/integer_executor.h"
#include "tests/sim/heard_lines.h"
#include "tests/stages/host_passes.h"

namespace shoal {
namespace {

// From its `honest`-th tensor on, what it hands on has this value everywhere.
class Enlarger final : public IntegerExecutor {
 public:
  Enlarger(const StageSpec& spec, std::uint64_t honest) : IntegerExecutor(spec), honest_(honest) {}

  Result<ForwardOutput> forward(const ForwardInput& input, FrameCoder& coder) override {
    ChangingCoder enlarging(coder, [this](std::span<float> tensor) { enlarge(tensor); });
    return IntegerExecutor::forward(input, enlarging);
  }
  Result<BackwardOutput> backward(EntrySerial entry, FrameCoder& coder, std::optional<WindowSlot> window) override {
    ChangingCoder enlarging(coder, [this](std::span<float> tensor) { enlarge(tensor); });
    return IntegerExecutor::backward(entry, enlarging, window);
  }

 private:
  void enlarge(std::span<float> tensor) {
    if (made_++ >= honest_) std::ranges::fill(tensor, 1e30f);
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

// Stage 0 hands activations on, stage 1 gradients. The peer that gets them names the sender and asks another one.
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
