// Memory that ends in a pass, at the middle one of three stages with an exact executor.
#include "common/fault.h"
#include "tests/stage_peer/entry_jobs_fixture.h"

namespace shoal {
namespace {

class MemoryTest : public LinesTest {
 protected:
  void TearDown() override { disarm_faults(); }
  void count(std::uint64_t serial) {
    const Truth truth = truth_of(serial);
    forward(serial, raw(truth.activation_in, TensorRole::kActivation));
    backward(serial, raw(truth.gradient_in, TensorRole::kGradient));
  }
};

TEST_F(MemoryTest, ThatEndsInAForwardHalvesWhatIsTakenOnce) {
  for (std::uint64_t serial = 1; serial <= 4; ++serial) count(serial);
  const CountTag before = counted();
  ASSERT_TRUE(arm_faults("peer.memory=error").ok());
  forward(5, raw(truth_of(5).activation_in, TensorRole::kActivation));
  EXPECT_EQ(state_of(5), std::nullopt);
  ASSERT_EQ(take<Busy>(kAbove).size(), 1u) << "another peer gets it";
  EXPECT_EQ(credits.limit(true), 2u) << "of five";
  EXPECT_EQ(counted(), before);
  EXPECT_EQ(told_to_leave, 0);
}

TEST_F(MemoryTest, ThatEndsInABackwardCountsNothing) {
  count(1);
  const Truth truth = truth_of(2);
  forward(2, raw(truth.activation_in, TensorRole::kActivation));
  take<Gradient>(kAbove);
  ASSERT_TRUE(arm_faults("peer.memory=error").ok());
  backward(2, raw(truth.gradient_in, TensorRole::kGradient));
  EXPECT_EQ(state_of(2), std::nullopt);
  EXPECT_EQ(counted(), count_tag(naming::id(1)));
  EXPECT_TRUE(take<Gradient>(kAbove).empty());
  EXPECT_EQ(credits.limit(true), 1u);
  EXPECT_EQ(told_to_leave, 0);
}

TEST_F(MemoryTest, ThatDoesNotHoldOneMicrobatchMakesItLeave) {
  ASSERT_TRUE(arm_faults("peer.memory=error").ok());
  forward(1, raw(truth_of(1).activation_in, TensorRole::kActivation));
  EXPECT_EQ(told_to_leave, 1);
  EXPECT_TRUE(lost.empty()) << "it leaves in order";
}

// A frame of nine extents is refused as too large, which is not memory that ended.
TEST_F(MemoryTest, IsNotWhatASenderSaysOfItsFrames) {
  const auto vast = [](const Bytes& frame) {
    constexpr std::size_t kDimsAt = 8;  // docs/WIRE.md
    Buffer buffer(frame.size());
    std::ranges::copy(frame.view(), buffer.data());
    buffer.data()[kDimsAt] = 9;
    return std::move(buffer).freeze();
  };
  forward(1, vast(raw(truth_of(1).activation_in, TensorRole::kActivation)));
  EXPECT_EQ(state_of(1), std::nullopt);
  forward(2, raw(truth_of(2).activation_in, TensorRole::kActivation), vast(raw(tokens(), TensorRole::kTokens)));
  EXPECT_EQ(state_of(2), std::nullopt);
  EXPECT_EQ(told_to_leave, 0);

  // Nor does it cost the graphs of others.
  const Truth truth = truth_of(3);
  forward(3, raw(truth.activation_in, TensorRole::kActivation));
  const std::vector<Sent> asked = take<Forward>(kBelow);
  forward(4, raw(truth_of(4).activation_in, TensorRole::kActivation));
  backward(4, vast(raw(truth_of(4).gradient_in, TensorRole::kGradient)));
  EXPECT_EQ(executor->graph_count(), 2u);
  EXPECT_EQ(told_to_leave, 0);
}

}  // namespace
}  // namespace shoal
