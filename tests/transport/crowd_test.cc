#include "transport/crowd.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

const TimePoint kStart{};

TEST(CrowdTest, WhoStandsLongestGivesWay) {
  Crowd crowd(3, 3);
  for (Crowd::Id id : {1u, 2u, 3u}) EXPECT_EQ(crowd.enter(id, "a" + std::to_string(id), kStart), std::nullopt);
  EXPECT_EQ(crowd.enter(4, "b", kStart), 1u);
  EXPECT_EQ(crowd.size(), 3u);
  EXPECT_FALSE(crowd.holds(1));
  EXPECT_TRUE(crowd.holds(4));
}

TEST(CrowdTest, AnAddressThatHasTooManyPushesOutItsOwn) {
  Crowd crowd(10, 2);
  EXPECT_EQ(crowd.enter(1, "honest", kStart), std::nullopt);
  EXPECT_EQ(crowd.enter(2, "flood", kStart), std::nullopt);
  EXPECT_EQ(crowd.enter(3, "flood", kStart), std::nullopt);
  for (Crowd::Id id = 4; id < 100; ++id) EXPECT_EQ(crowd.enter(id, "flood", kStart), id - 2);
  EXPECT_TRUE(crowd.holds(1));
  EXPECT_EQ(crowd.size(), 3u);
}

TEST(CrowdTest, WhoLeftMakesRoomForItsAddressAndForAll) {
  Crowd crowd(2, 1);
  EXPECT_EQ(crowd.enter(1, "a", kStart), std::nullopt);
  EXPECT_EQ(crowd.enter(2, "b", kStart), std::nullopt);
  crowd.leave(1);
  crowd.leave(1);
  crowd.leave(99);
  EXPECT_EQ(crowd.enter(3, "a", kStart), std::nullopt);
  EXPECT_EQ(crowd.enter(4, "c", kStart), 2u);
}

TEST(CrowdTest, SaysWhoIsHereForTooLong) {
  Crowd crowd(10, 10);
  for (Crowd::Id id = 0; id < 5; ++id) (void)crowd.enter(id, "a", kStart + static_cast<int>(id) * 1s);
  crowd.leave(1);
  EXPECT_EQ(crowd.here_since_before(kStart + 3s), (std::vector<Crowd::Id>{0, 2}));
  EXPECT_TRUE(crowd.here_since_before(kStart).empty());
}

}  // namespace
}  // namespace shoal
