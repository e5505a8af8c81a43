#include "transport/address_pace.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

const TimePoint kPaceStart = TimePoint() + 3600s;

TEST(AddressPaceTest, ABurstPassesAndThenSoManyASecond) {
  AddressPace pace(2, 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pace.take("flood", kPaceStart));
  EXPECT_FALSE(pace.take("flood", kPaceStart));
  EXPECT_FALSE(pace.take("flood", kPaceStart + 499ms));
  EXPECT_TRUE(pace.take("flood", kPaceStart + 501ms));
  EXPECT_FALSE(pace.take("flood", kPaceStart + 501ms));
}

TEST(AddressPaceTest, OneAddressCostsAnotherNothing) {
  AddressPace pace(1, 1);
  EXPECT_TRUE(pace.take("flood", kPaceStart));
  EXPECT_FALSE(pace.take("flood", kPaceStart));
  EXPECT_TRUE(pace.take("honest", kPaceStart));
}

TEST(AddressPaceTest, OnlyAddressesThatCameLatelyAreHeld) {
  AddressPace pace(1, 4);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(pace.take("a" + std::to_string(i), kPaceStart));
  EXPECT_EQ(pace.size(), 1000u);
  EXPECT_TRUE(pace.take("b", kPaceStart + 5s));
  EXPECT_EQ(pace.size(), 1u);
}

TEST(AddressPaceTest, WhoIsStillOverTheRateIsNotForgotten) {
  AddressPace pace(1, 4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(pace.take("flood", kPaceStart + 3s));
  EXPECT_TRUE(pace.take("other", kPaceStart + 5s));
  EXPECT_TRUE(pace.take("flood", kPaceStart + 5s));
  EXPECT_TRUE(pace.take("flood", kPaceStart + 5s));
  EXPECT_FALSE(pace.take("flood", kPaceStart + 5s));
}

}  // namespace
}  // namespace shoal
