#include "transport/token_bucket.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

int taken_at(TokenBucket& bucket, TimePoint now) {
  int taken = 0;
  while (bucket.take(now)) ++taken;
  return taken;
}

TEST(TokenBucketTest, GivesABurstAndThenItsRate) {
  TokenBucket bucket(1000, 50);
  TimePoint now(1s);
  EXPECT_EQ(taken_at(bucket, now), 50);
  EXPECT_EQ(taken_at(bucket, now), 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(taken_at(bucket, now += 10ms), 10);
  EXPECT_EQ(taken_at(bucket, now += std::chrono::hours(1)), 50) << "never more than the burst";
}

TEST(TokenBucketTest, WhoStaysBelowTheRateIsNeverRefused) {
  TokenBucket bucket(20'000, 40'000);
  TimePoint now(1s);
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(bucket.take(now += 51us)) << i;
}

}  // namespace
}  // namespace shoal
