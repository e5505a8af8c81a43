// Headers whose frames do not come: each takes a credit of the peer, and costs its sender nothing.
#include "router/arrivals.h"

#include <gtest/gtest.h>

#include "names.h"

namespace shoal {
namespace {

using namespace naming;

class ArrivalsTest : public testing::Test {
 protected:
  const Session honest = session(2), liar = session(3);
  EntrySerial announce(const Session& holder) {
    ++serial;
    arrivals.await(serial, holder, serial, now);
    return serial;
  }
  void bring(EntrySerial entry) { arrivals.whole(entry, now); }
  // How many headers of it are taken.
  std::size_t announce_all(const Session& holder) {
    std::size_t taken = 0;
    for (; arrivals.may_announce(holder); ++taken) announce(holder);
    return taken;
  }
  std::size_t given_up_in(Duration time) {
    std::size_t count = 0;
    for (const TimePoint end = now + time; now < end;) {
      now += 500ms;
      for (const EntrySerial entry : arrivals.overdue(now)) {
        arrivals.forget(entry);
        ++count;
      }
    }
    return count;
  }
  Arrivals arrivals{{.credits = 16, .recovery_credits = 1, .lease = 4s}};
  TimePoint now = at(Duration(0));
  EntrySerial serial = 0;
};

TEST_F(ArrivalsTest, FramesAreOneEntrysInputOnce) {
  arrivals.await(7, honest, 3, now);
  arrivals.await(8, liar, 3, now);
  EXPECT_EQ(arrivals.serial_of(honest, 5), std::nullopt);
  EXPECT_EQ(arrivals.serial_of(liar, 3), 8u) << "a transfer's number belongs to its link";
  EXPECT_EQ(arrivals.serial_of(honest, 3), 7u);
  arrivals.whole(7, now);
  EXPECT_EQ(arrivals.serial_of(honest, 3), std::nullopt);
}

TEST_F(ArrivalsTest, OneHoldersHeadersLeaveHalfOfTheCreditsToTheOthers) {
  bring(announce(honest));
  EXPECT_EQ(announce_all(liar), 8u);
  EXPECT_EQ(announce_all(honest), 8u);
}

TEST_F(ArrivalsTest, WhatDoesNotComeIsGivenUpAndItsSenderHasFewCreditsUntilSomethingComes) {
  bring(announce(honest));
  given_up_in(1s);
  ASSERT_EQ(announce_all(liar), 8u);
  EXPECT_EQ(given_up_in(Arrivals::kUnknown), 0u);
  EXPECT_EQ(given_up_in(1s), 8u);
  EXPECT_EQ(announce_all(liar), 4u);
  EXPECT_EQ(given_up_in(Arrivals::kUnknown + 1s), 0u) << "a slow line may need longer than it was given before";
  EXPECT_EQ(given_up_in(Arrivals::kMax - Arrivals::kUnknown), 4u);
  EXPECT_EQ(announce_all(liar), 2u);
  bring(serial);
  bring(serial - 1);
  EXPECT_EQ(announce_all(liar), 8u) << "both came";
}

// Those of one link come one after another: each that is whole is a reason to wait for the next.
TEST_F(ArrivalsTest, FramesOfASlowLineAreWaitedFor) {
  for (int i = 0; i < 3; ++i) announce(honest);
  for (const EntrySerial entry : {1u, 2u, 3u}) {
    EXPECT_EQ(given_up_in(15s), 0u) << entry;
    bring(entry);
  }
  announce(honest);
  EXPECT_EQ(given_up_in(50s), 0u) << "four times what its slowest took";
  EXPECT_EQ(given_up_in(15s), 1u);
}

TEST_F(ArrivalsTest, TimeThatWeSleptIsNotTheirs) {
  announce(honest);
  given_up_in(1s);
  now += 60s;
  EXPECT_TRUE(arrivals.overdue(now).empty());
}

TEST_F(ArrivalsTest, AHolderDoesNotShareTheCreditsWithItsOwnLifeBefore) {
  bring(announce(honest));
  EXPECT_GT(announce_all({honest.peer_tag, 99}), 8u) << "nobody else claims";
}

}  // namespace
}  // namespace shoal
