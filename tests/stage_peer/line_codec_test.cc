#include "runtime/stage_peer/line_codec.h"

#include <gmock/gmock.h>

namespace shoal {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kTensor = 1'000'000;

// Whether the last of so many tensors changed the codec.
bool follow(LineCodec& line, double rate, double compute, int tensors = LineCodec::kInARow) {
  bool changed = false;
  for (int i = 0; i < tensors; ++i) changed = line.follow(rate, compute);
  return changed;
}

TEST(LineCodecTest, CountsALineAsSlowUntilItIsMeasured) {
  LineCodec line(kTensor);
  EXPECT_EQ(line.codec(), CodecId::kInt8);
  EXPECT_FALSE(line.follow(0, 0.1));
  EXPECT_FALSE(line.follow(1e12, 0));
  EXPECT_EQ(line.codec(), CodecId::kInt8);
  EXPECT_THAT(line.reason(), HasSubstr("no line"));
}

TEST(LineCodecTest, SendsRawWhereTheLineCarriesItInPassing) {
  LineCodec line(kTensor);
  EXPECT_FALSE(follow(line, 1e9, 0.1, LineCodec::kInARow - 1)) << "it may be a chance";
  EXPECT_TRUE(line.follow(1e9, 0.1));  // 1 ms beside 100
  EXPECT_EQ(line.codec(), CodecId::kRaw);
  EXPECT_FALSE(line.follow(1e9, 0.1));
}

TEST(LineCodecTest, GoesBackWhenTheLineBecomesTheBound) {
  LineCodec line(kTensor);
  follow(line, 1e9, 0.1);
  EXPECT_TRUE(line.follow(1e6, 0.1));
  EXPECT_EQ(line.codec(), CodecId::kInt8);
  EXPECT_EQ(line.reason(), "a raw tensor takes 1000 ms of a line of 8 Mbit/s, and a microbatch is computed in 100 ms");
}

// Between the two limits it stays what it is, whatever that is.
TEST(LineCodecTest, DoesNotFollowARateThatComesAndGoes) {
  const double compute = 0.1, between = static_cast<double>(kTensor) / (compute / 8);
  LineCodec line(kTensor);
  EXPECT_FALSE(line.follow(between, compute));
  EXPECT_EQ(line.codec(), CodecId::kInt8);
  follow(line, 1e9, compute);
  EXPECT_FALSE(line.follow(between, compute));
  EXPECT_EQ(line.codec(), CodecId::kRaw);
}

// A faster device makes the same line slow.
TEST(LineCodecTest, JudgesALineByWhatIsComputedMeanwhile) {
  LineCodec slow_device(kTensor), fast_device(kTensor);
  follow(slow_device, 12.5e6, 2.0);
  follow(fast_device, 12.5e6, 0.05);
  EXPECT_EQ(slow_device.codec(), CodecId::kRaw);
  EXPECT_EQ(fast_device.codec(), CodecId::kInt8);
}

}  // namespace
}  // namespace shoal
