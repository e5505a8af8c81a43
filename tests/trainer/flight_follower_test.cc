// How many microbatches are under way, against a pipe whose time and rate are known.
#include "runtime/trainer/flight_follower.h"

#include <gtest/gtest.h>

#include <deque>

namespace shoal {
namespace {

FlightFollower follower_of(std::uint64_t least, std::uint64_t most, std::uint64_t stages = 1) {
  FlightFollower follower(1, stages);
  follower.bound(least, most);
  return follower;
}

// A pipe of `empty_s` from end to end that finishes one microbatch every `gap_s`.
struct Pipe {
  double empty_s = 1, gap_s = 0.1;
  double time_of(std::uint64_t under_way) const { return std::max(empty_s, static_cast<double>(under_way) * gap_s); }
};

// The first ones find the pipe empty.
std::uint64_t followed(FlightFollower& follower, const Pipe& pipe, int microbatches) {
  follower.decided(from_seconds(pipe.empty_s), true);
  for (int i = 0; i < microbatches; ++i) follower.decided(from_seconds(pipe.time_of(follower.in_flight())), true);
  return follower.in_flight();
}

TEST(FlightFollowerTest, FillsALongPipeAndNoMore) {
  FlightFollower follower = follower_of(4, 64);
  const std::uint64_t n = followed(follower, {.empty_s = 2, .gap_s = 0.1}, 2000);
  EXPECT_GE(n, 20u + 2u) << "20 fill it, and two wait";
  EXPECT_LE(n, 20u + 4u);
}

TEST(FlightFollowerTest, StaysWhereEnoughWait) {
  FlightFollower follower = follower_of(16, 64, 4);
  EXPECT_EQ(followed(follower, {.empty_s = 0.8, .gap_s = 0.1}, 2000), 16u) << "8 of them, for four stages";
}

TEST(FlightFollowerTest, NeverPassesWhatLateGradientsMayCost) {
  FlightFollower follower = follower_of(4, 8);
  EXPECT_EQ(followed(follower, {.empty_s = 10, .gap_s = 0.1}, 2000), 8u);
}

// A long pipe, and a ramp whose line and price both rise.
TEST(FlightFollowerTest, RisesOnARampAsFarAsItIsBorneThere) {
  FlightFollower follower = follower_of(6, 10);
  const Pipe pipe{.empty_s = 2, .gap_s = 0.1};
  EXPECT_EQ(followed(follower, pipe, 200), 10u);
  follower.bound(8, 13);
  EXPECT_EQ(followed(follower, pipe, 200), 13u);
  follower.bound(14, 40);
  EXPECT_EQ(follower.in_flight(), 14u) << "the line has come past it";
  EXPECT_GE(followed(follower, pipe, 2000), 20u + 2u);
  follower.bound(2, 4);
  EXPECT_EQ(follower.in_flight(), 4u);
}

TEST(FlightFollowerTest, GoesBackWhenThePipeBecomesSlower) {
  FlightFollower follower = follower_of(4, 64);
  EXPECT_GE(followed(follower, {.empty_s = 2, .gap_s = 0.1}, 2000), 20u);
  EXPECT_LE(followed(follower, {.empty_s = 2, .gap_s = 0.4}, 4000), 9u) << "5 fill it";
}

TEST(FlightFollowerTest, LearnsAnewWhenTheMembersChange) {
  FlightFollower follower = follower_of(4, 64);
  const Pipe near{.empty_s = 0.4, .gap_s = 0.1}, far{.empty_s = 3, .gap_s = 0.1};
  EXPECT_LE(followed(follower, near, 1000), 8u);
  EXPECT_LE(followed(follower, far, 1000), 8u) << "it takes the way for waiting";
  follower.forget();
  EXPECT_GE(followed(follower, far, 3000), 30u);
}

// Where something else holds microbatches back, time says nothing of the number.
TEST(FlightFollowerTest, RaisesNothingWhileFewerAreUnderWay) {
  FlightFollower follower = follower_of(4, 64);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(follower.decided(1s, false));
  EXPECT_EQ(follower.in_flight(), 4u);
}

TEST(FlightFollowerTest, OneThatTookLongIsNoQueue) {
  FlightFollower follower = follower_of(8, 64);
  const Pipe pipe{.empty_s = 2, .gap_s = 0.1};
  for (int i = 0; i < 3000; ++i) {
    const double more = i % 10 == 0 ? 30 : 0;
    follower.decided(from_seconds(pipe.time_of(follower.in_flight()) + more), true);
  }
  EXPECT_GE(follower.in_flight(), 20u);
}

}  // namespace
}  // namespace shoal
