// What a tensor's norm does to its sender, and what it does not.
#include "runtime/stage_peer/norm_guard.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/router/names.h"

namespace shoal {
namespace {

using namespace naming;

MicrobatchId microbatch(std::uint64_t serial) { return {1, serial}; }

class NormGuardTest : public testing::Test {
 protected:
  void learn(double rms, int times) {
    for (int i = 0; i < times; ++i) guard.used(session(1), rms);
  }
  NormGuard guard;
};

TEST_F(NormGuardTest, KnowsNoMeanBeforeItSawEnoughAndRefusesTheAbsurdFromTheBeginning) {
  EXPECT_EQ(guard.limit(), NormGuard::kAlwaysMax);
  learn(0.01, static_cast<int>(NormGuard::kLearntFrom) - 1);
  EXPECT_EQ(guard.limit(), NormGuard::kAlwaysMax);
  learn(0.01, 1);
  EXPECT_NEAR(guard.mean(), 0.01, 1e-9);
  EXPECT_NEAR(guard.limit(), 0.01 * NormGuard::kFactor, 1e-9);
}

TEST_F(NormGuardTest, ZerosTeachNothing) {
  learn(0, 100);
  EXPECT_EQ(guard.mean(), 0);
}

TEST_F(NormGuardTest, OneLargeTensorThatIsUsedHardlyMovesTheMean) {
  learn(1, 1000);
  guard.used(session(2), 60);
  EXPECT_LT(guard.mean(), 1.2);
}

TEST_F(NormGuardTest, WhoSendsTooLargeOnesRestsEverLonger) {
  learn(1, 100);
  TimePoint now = at(0s);
  for (std::uint32_t i = 1; i < NormGuard::kRefusalsMax; ++i)
    EXPECT_FALSE(guard.refused(session(2), microbatch(0), 1e30, now));
  EXPECT_FALSE(guard.rests(session(2), now));
  EXPECT_EQ(guard.refused(session(2), microbatch(0), 1e30, now), kPeerRest.first);
  EXPECT_TRUE(guard.rests(session(2), now + 29s));
  EXPECT_FALSE(guard.rests(session(2), now + 30s));
  EXPECT_FALSE(guard.rests(session(1), now));
  EXPECT_FALSE(guard.refused(session(2), microbatch(0), 1e30, now + 1s)) << "it rests already: one that was on its way";
  now += 31s;
  EXPECT_EQ(guard.refused(session(2), microbatch(0), 1e30, now), 2 * kPeerRest.first);
  for (int i = 0; i < 10; ++i) {
    now += kPeerRest.most;
    (void)guard.refused(session(2), microbatch(0), 1e30, now);
  }
  EXPECT_FALSE(guard.rests(session(2), now + kPeerRest.most));
}

TEST_F(NormGuardTest, AnotherSessionOfTheSameKeyIsTheSamePeer) {
  learn(1, 100);
  for (std::uint32_t i = 0; i < NormGuard::kRefusalsMax; ++i)
    (void)guard.refused(session(2), microbatch(0), 1e30, at(0s));
  EXPECT_TRUE(guard.rests(Session{session(2).peer_tag, 77}, at(1s)));
}

TEST_F(NormGuardTest, ARefusalIsForgottenByManyThatWereUsed) {
  learn(1, 100);
  (void)guard.refused(session(2), microbatch(0), 1e30, at(0s));
  for (std::uint32_t i = 0; i < NormGuard::kForgivenBy; ++i) guard.used(session(2), 1);
  for (std::uint32_t i = 1; i < NormGuard::kRefusalsMax; ++i)
    EXPECT_FALSE(guard.refused(session(2), microbatch(0), 1e30, at(1s)));
}

// Else a model whose gradients grew by a factor of a thousand would never train again.
TEST_F(NormGuardTest, AnEdgeThatGrewIsNotRefusedForEver) {
  learn(1, 1000);
  int refusals = 0;
  for (; 1000 > guard.limit() && refusals < 200; ++refusals)
    (void)guard.refused(session(2), microbatch(0), 1000, at(0s));
  EXPECT_GT(refusals, 5);
  EXPECT_LT(refusals, 100);
}

TEST_F(NormGuardTest, ManyPeersCostABoundedMemoryAndTheOldestIsForgotten) {
  learn(1, 100);
  const auto refuse_until_rest = [&](std::uint64_t tag, TimePoint now) {
    for (std::uint32_t i = 0; i < NormGuard::kRefusalsMax; ++i)
      (void)guard.refused(session(tag), microbatch(0), 1e30, now);
  };
  refuse_until_rest(1'000'000, at(0s));
  for (std::uint64_t tag = 1; tag <= NormGuard::kSendersMax; ++tag) refuse_until_rest(tag, at(1s));
  EXPECT_FALSE(guard.rests(session(1'000'000), at(2s)));
  EXPECT_TRUE(guard.rests(session(NormGuard::kSendersMax), at(2s)));
}

// Else two tensors of next to nothing make all that is honest too large, and who sent them has the edge alone.
TEST_F(NormGuardTest, TinyTensorsDoNotMakeOrdinaryOnesTooLarge) {
  for (int i = 0; i < 3; ++i) guard.used(session(2), 1e-38);
  learn(1, static_cast<int>(NormGuard::kLearntFrom) - 3);
  EXPECT_NEAR(guard.mean(), 1, 1e-9) << "three of the first eight";
  learn(1, 100);
  for (int i = 0; i < 8; ++i) guard.used(session(2), 1e-38);
  EXPECT_LT(1, guard.limit());
}

// Its gradient is as large from every replica: the run would stand behind it.
TEST_F(NormGuardTest, AMicrobatchThatIsAnOutlierItselfIsScaledAtItsThirdTime) {
  learn(1, 100);
  for (int i = 0; i < NormGuard::kRefusedTwice; ++i) {
    EXPECT_FALSE(guard.bound_of(microbatch(7)).scale);
    (void)guard.refused(session(static_cast<std::uint64_t>(2 + i)), microbatch(7), 1e5, at(0s));
  }
  EXPECT_TRUE(guard.bound_of(microbatch(7)).scale);
  EXPECT_FALSE(guard.bound_of(microbatch(8)).scale);
  EXPECT_LT(guard.bound_of(microbatch(7)).limit, 1e5);
  guard.scaled(microbatch(7));
  EXPECT_FALSE(guard.bound_of(microbatch(7)).scale);
  for (std::uint64_t serial = 100; serial < 100 + NormGuard::kMicrobatchesMax; ++serial)
    for (int i = 0; i < NormGuard::kRefusedTwice; ++i) (void)guard.refused(session(2), microbatch(serial), 1e5, at(0s));
  (void)guard.refused(session(2), microbatch(99), 1e5, at(0s));
  EXPECT_FALSE(guard.bound_of(microbatch(100)).scale) << "a bounded memory";
}

}  // namespace
}  // namespace shoal
