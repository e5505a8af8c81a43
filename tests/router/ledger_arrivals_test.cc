// Headers whose frames do not come: each takes a credit of the peer, and costs its sender nothing.
#include "ledger_rig.h"

namespace shoal {
namespace {

using namespace naming;
using S = EntryState;

class LedgerArrivalsTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kHonest = 2, kLiar = 3;
  // The liar announces microbatches from `first` on until it is told Busy; returns how many were taken.
  std::uint64_t announce(std::uint64_t first) {
    std::uint64_t taken = 0;
    while (rig.forward(kLiar, first + taken)) ++taken;
    EXPECT_TRUE(rig.told_busy(kLiar, BusyReason::kNoCredit));
    for (std::uint64_t i = 0; i < taken; ++i) claims.push_back({kLiar, first + i});
    return taken;
  }
  // Time in which all claims are renewed.
  void pass(Duration time) {
    for (const TimePoint end = rig.now + time; rig.now < end;) {
      rig.now += 500ms;
      for (const auto& [tag, claim] : claims) rig.renew(tag, claim);
      rig.ledger.tick(rig.now);
    }
  }
  LedgerRig rig{1, 2, 1, 16};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> claims;
};

TEST_F(LedgerArrivalsTest, OneHoldersHeadersLeaveHalfOfTheCreditsToTheOthers) {
  rig.accept(kHonest, 1);
  EXPECT_EQ(announce(100), 8u);
  for (std::uint64_t serial = 2; serial <= 8; ++serial) rig.accept(kHonest, serial);
}

TEST_F(LedgerArrivalsTest, WhatDoesNotComeIsGivenUpAndItsSenderHasFewCreditsUntilSomethingComes) {
  rig.accept(kHonest, 1);
  rig.work_all();
  pass(1s);
  ASSERT_EQ(announce(100), 8u);
  pass(Ledger::kArrivalUnknown - 2s);
  ASSERT_NE(rig.ledger.find_live(id(100)), nullptr);
  rig.refused.clear();
  pass(3s);
  EXPECT_EQ(rig.ledger.find_live(id(100)), nullptr);
  EXPECT_EQ(rig.refused.size(), 8u) << "their frames are not wanted any more";
  const auto busy = rig.take_sent<Busy>(kLiar);
  ASSERT_EQ(busy.size(), 8u);
  EXPECT_EQ(busy[0].reason, BusyReason::kFailed);
  claims.clear();
  EXPECT_EQ(announce(200), 4u);
  pass(Ledger::kArrivalUnknown + 1s);
  EXPECT_NE(rig.ledger.find_live(id(200)), nullptr) << "a slow line may need longer than it was given before";
  pass(Ledger::kArrivalMax - Ledger::kArrivalUnknown);
  (void)rig.take_sent<Busy>(kLiar);
  claims.clear();
  EXPECT_EQ(announce(300), 2u);
  for (std::uint64_t serial = 300; serial < 302; ++serial)
    rig.ledger.inputs_arrived(rig.ledger.find_live(id(serial))->serial);
  EXPECT_EQ(announce(400), 8u) << "both came";
}

// Those of one link come one after another: each that is whole is a reason to wait for the next.
TEST_F(LedgerArrivalsTest, FramesOfASlowLineAreWaitedFor) {
  for (std::uint64_t serial = 1; serial <= 3; ++serial) {
    ASSERT_TRUE(rig.forward(kHonest, serial));
    claims.push_back({kHonest, serial});
  }
  for (std::uint64_t serial = 1; serial <= 3; ++serial) {
    pass(15s);
    ASSERT_NE(rig.ledger.find_live(id(serial)), nullptr) << serial;
    rig.ledger.inputs_arrived(rig.ledger.find_live(id(serial))->serial);
    EXPECT_EQ(rig.state(serial), S::kReady);
  }
  ASSERT_TRUE(rig.forward(kHonest, 4));
  claims.push_back({kHonest, 4});
  pass(50s);
  EXPECT_NE(rig.ledger.find_live(id(4)), nullptr) << "four times what its slowest took";
}

TEST_F(LedgerArrivalsTest, TimeThatWeSleptIsNotTheirs) {
  ASSERT_TRUE(rig.forward(kHonest, 1));
  claims.push_back({kHonest, 1});
  pass(1s);
  rig.now += 60s;
  rig.renew(kHonest, 1);
  rig.ledger.note_time(rig.now);  // as the stage's tick does, and every message
  rig.ledger.tick(rig.now);
  EXPECT_EQ(rig.state(1), S::kArriving);
}

TEST_F(LedgerArrivalsTest, AHolderDoesNotShareTheCreditsWithItsOwnLifeBefore) {
  rig.accept(kHonest, 1);
  const Session resumed{session(kHonest).peer_tag, 99};
  std::uint64_t taken = 0;
  while (rig.forward(kHonest, 100 + taken, 0, {}, {}, resumed)) ++taken;
  EXPECT_GT(taken, 8u) << "nobody else claims";
}

}  // namespace
}  // namespace shoal
