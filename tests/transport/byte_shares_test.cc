#include "transport/relay/byte_shares.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "common/rng.h"

namespace shoal {
namespace {

constexpr TimePoint kStart{1000s};
constexpr double kRate = 1.25e6;  // 10 Mbit/s

// Carries for so long in virtual time, each turn all of it or less; a look every millisecond.
class Line {
 public:
  explicit Line(double rate) : shares_(rate) {}
  ByteShares& shares() { return shares_; }
  void read_at_most(ByteShares::Flow flow, std::size_t bytes) { most_[flow] = bytes; }
  void run(Duration time) {
    for (const TimePoint end = now_ + time; now_ < end; now_ += 1ms)
      while (const auto turn = shares_.next(now_)) {
        const auto most = most_.find(turn->flow);
        const std::size_t bytes = most == most_.end() ? turn->bytes_max : std::min(most->second, turn->bytes_max);
        shares_.carried(turn->flow, bytes);
        carried_[turn->flow] += static_cast<double>(bytes);
      }
  }
  double carried(ByteShares::Flow flow) const { return carried_.contains(flow) ? carried_.at(flow) : 0; }
  double carried() const {
    double all = 0;
    for (const auto& [flow, bytes] : carried_) all += bytes;
    return all;
  }

 private:
  ByteShares shares_;
  TimePoint now_ = kStart;
  std::map<ByteShares::Flow, std::size_t> most_;
  std::map<ByteShares::Flow, double> carried_;
};

TEST(ByteSharesTest, TheCapIsKept) {
  for (const double rate : {32e3, kRate, 12.5e6}) {
    Line line(rate);
    for (ByteShares::Flow flow = 1; flow <= 3; ++flow) line.shares().want(flow, Lane::kBulk);
    line.shares().want(9, Lane::kControl);
    line.run(60s);
    EXPECT_LE(line.carried(), rate * 60 + std::max(ByteShares::kBurstMin, rate * seconds_of(ByteShares::kBurst)));
    EXPECT_GE(line.carried(), rate * 60 * 0.98);
  }
}

// Jain's index is 1 where all have the same.
TEST(ByteSharesTest, EightPairsHaveTheSame) {
  Line line(kRate);
  Rng rng(3);
  for (ByteShares::Flow flow = 1; flow <= 8; ++flow) {
    line.shares().want(flow, Lane::kBulk);
    line.read_at_most(flow, 500 + rng.below(60'000));  // what one read finds differs by a hundred
  }
  line.run(30s);
  double sum = 0, squares = 0;
  for (ByteShares::Flow flow = 1; flow <= 8; ++flow) {
    sum += line.carried(flow);
    squares += line.carried(flow) * line.carried(flow);
  }
  EXPECT_GE(sum * sum / (8 * squares), 0.99);
}

TEST(ByteSharesTest, ControlGoesFirst) {
  ByteShares shares(kRate);
  shares.want(1, Lane::kBulk);
  while (const auto turn = shares.next(kStart)) shares.carried(turn->flow, turn->bytes_max);
  shares.want(2, Lane::kControl);
  const auto at = shares.turn_at();
  ASSERT_TRUE(at.has_value());
  EXPECT_LE(*at - kStart, 1ms);  // it waits for a kibibyte, where bulk waits for a quantum
  const auto turn = shares.next(*at);
  ASSERT_TRUE(turn.has_value());
  EXPECT_EQ(turn->flow, 2u);
}

TEST(ByteSharesTest, NobodyStarvesBulkByCallingItControl) {
  Line line(kRate);
  line.shares().want(1, Lane::kBulk);
  for (ByteShares::Flow flow = 2; flow <= 5; ++flow) line.shares().want(flow, Lane::kControl);
  line.run(30s);
  EXPECT_GE(line.carried(1), line.carried() / 5 * 0.95);
  EXPECT_GE(line.carried(2), line.carried() / 5 * 0.95);
}

TEST(ByteSharesTest, WhoRestsIsPassedOver) {
  ByteShares shares(0);
  EXPECT_FALSE(shares.next(kStart).has_value());
  EXPECT_FALSE(shares.turn_at().has_value());
  shares.want(1, Lane::kBulk);
  shares.want(1, Lane::kBulk);
  shares.want(2, Lane::kBulk);
  shares.rest(1);
  shares.rest(1);
  for (int i = 0; i < 3; ++i) {
    const auto turn = shares.next(kStart);
    ASSERT_TRUE(turn.has_value());
    EXPECT_EQ(turn->flow, 2u);
    shares.carried(2, turn->bytes_max);
  }
  shares.rest(2);
  EXPECT_FALSE(shares.next(kStart).has_value());
}

TEST(ByteSharesTest, WithoutACapNobodyWaits) {
  ByteShares shares(0);
  shares.want(1, Lane::kBulk);
  for (int i = 0; i < 10'000; ++i) {
    const auto turn = shares.next(kStart);
    ASSERT_TRUE(turn.has_value());
    shares.carried(1, turn->bytes_max);
  }
}

}  // namespace
}  // namespace shoal
