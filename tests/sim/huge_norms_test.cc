// A member that computes, and hands on tensors that are finite and absurdly large.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
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
  Status backward_input(EntrySerial entry, FrameCoder& coder) override {
    ChangingCoder enlarging(coder, [this](std::span<float> tensor) { enlarge(tensor); });
    return IntegerExecutor::backward_input(entry, enlarging);
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
  EXPECT_GE(heard.with("times the median of this edge's senders"), 1u);
  EXPECT_GE(heard.with("are far too large again and again"), 1u);
  for (const std::string& broken : check_end(swarm)) ADD_FAILURE() << broken;
}

INSTANTIATE_TEST_SUITE_P(Stages, HugeNormsTest, testing::Values(0, 1));

// Gradients of the last stage go on as a millionth of what they are, and stage 0 makes them whole again: as right as
// any, and of another size.
constexpr float kTiny = 0x1p-20f;

class Belittler final : public IntegerExecutor {
 public:
  using IntegerExecutor::IntegerExecutor;
  Status backward_input(EntrySerial entry, FrameCoder& coder) override {
    ChangingCoder small(coder, [](std::span<float> tensor) {
      for (float& value : tensor) value *= kTiny;
    });
    return IntegerExecutor::backward_input(entry, small);
  }
};

class Restorer final : public IntegerExecutor {
 public:
  using IntegerExecutor::IntegerExecutor;
  Status backward_input(EntrySerial entry, FrameCoder& coder) override {
    struct Whole final : FrameCoder {
      explicit Whole(FrameCoder& inner) : inner(inner) {}
      Result<double> decode(const PlacedSpace& to) override {
        auto rms = inner.decode(to);
        if (rms.ok() && *rms < 0.01)
          for (float& value : to.f32_on_host()) value /= kTiny;
        return rms;
      }
      Status encode(const PlacedTensor& from) override { return inner.encode(from); }
      FrameCoder& inner;
    } whole(coder);
    return IntegerExecutor::backward_input(entry, whole);
  }
};

// A member whose device is ten times as fast answers most of all, and what it sends is tiny: the mean of all tensors is
// its own, and beside that everybody else's are far too large.
TEST(TinyNormsTest, OfTheBusiestMemberMakeNobodyElsesTensorsTooLarge) {
  const HeardLines heard;
  SwarmOptions options;
  options.stages = 2;
  options.replicas = 3;
  options.config = small_config(RuleId::kDiloco, 2, 600);
  auto taken = std::make_shared<bool>(false);
  options.factory = [taken](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
    std::unique_ptr<StageExecutor> made = std::make_unique<Restorer>(spec);
    if (spec.stage.value == 1) made = std::make_unique<IntegerExecutor>(spec);
    if (spec.stage.value == 1 && !std::exchange(*taken, true)) made = std::make_unique<Belittler>(spec);
    return made;
  };
  Swarm swarm(options);
  const std::size_t liar = 1;  // peers of both stages take turns
  for (const std::size_t honest : {3u, 5u}) {
    SimPace slow;
    slow.forward *= 10;
    slow.backward *= 10;
    swarm.peers()[honest]->device->set_pace(slow);
  }
  ASSERT_TRUE(swarm.run_to_end(600s));
  EXPECT_EQ(swarm.summary().committed, 600u);
  EXPECT_EQ(heard.with("far too large"), 0u);
  std::map<std::uint64_t, int> counted;  // by key, at the last stage
  for (const SimEvent& e : swarm.events())
    if (e.event == EventKind::kCounted) ++counted[e.writer.peer_tag];
  const auto of = [&](std::size_t index) { return counted[Session::of(swarm.peers()[index]->key.id(), 0).peer_tag]; };
  EXPECT_GT(of(liar), 2 * (of(3) + of(5))) << "it answers most";
  EXPECT_GT(of(3), 0);
  EXPECT_GT(of(5), 0);
  for (const std::string& broken : check_end(swarm)) ADD_FAILURE() << broken;
}

}  // namespace
}  // namespace shoal
