// What a tensor's norm does to its sender, and what it does not.
#include "runtime/edge/norm_guard.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/router/names.h"

namespace shoal {
namespace {

using namespace naming;

MicrobatchId microbatch(std::uint64_t serial) { return {1, serial}; }

class NormGuardTest : public testing::Test {
 protected:
  void learn(std::uint64_t sender, double rms, int times) {
    for (int i = 0; i < times; ++i) guard.used(session(sender), rms);
  }
  // Two senders whose tensors are as large.
  void two_at(double rms) {
    learn(1, rms, 100);
    learn(2, rms, 100);
  }
  // What becomes of a tensor.
  enum class Fate { kUsed, kScaled, kRefused };
  Fate send(std::uint64_t sender, std::uint64_t serial, double rms) {
    const NormGuard::Bound bound = guard.bound_of(microbatch(serial));
    if (rms <= bound.limit) {
      guard.used(session(sender), rms);
      return Fate::kUsed;
    }
    if (rms <= bound.scaled_from) {
      guard.scaled(session(sender), microbatch(serial), rms);
      return Fate::kScaled;
    }
    if (guard.refused(session(sender), microbatch(serial), at(0s))) (void)guard.rest(session(sender), at(0s));
    return Fate::kRefused;
  }
  NormGuard guard;
};

TEST_F(NormGuardTest, KnowsNothingBeforeItSawEnoughAndRefusesTheAbsurdFromTheBeginning) {
  EXPECT_EQ(guard.limit(), NormGuard::kAlwaysMax);
  learn(1, 0.01, static_cast<int>(NormGuard::kLearntFrom) - 1);
  EXPECT_EQ(guard.limit(), NormGuard::kAlwaysMax);
  EXPECT_EQ(send(2, 0, 1e30), Fate::kRefused);
  learn(1, 0.01, 1);
  EXPECT_NEAR(guard.normal(), 0.01, 1e-9);
  EXPECT_NEAR(guard.limit(), 0.01 * NormGuard::kFactor, 1e-9);
}

TEST_F(NormGuardTest, ZerosTeachNothing) {
  learn(1, 0, 100);
  EXPECT_EQ(guard.normal(), 0);
}

TEST_F(NormGuardTest, OneLargeTensorThatIsUsedHardlyMovesItsSendersMean) {
  learn(1, 1, 1000);
  guard.used(session(1), 60);
  EXPECT_LT(guard.normal(), 1.2);
}

// A mean over tensors would be what the busiest sender makes it: here honest peers' tensors were far too large.
TEST_F(NormGuardTest, ASenderIsWorthOneHoweverMuchItSends) {
  learn(1, 1, 8);
  learn(2, 1, 8);
  learn(3, 1e-3, 10'000);
  EXPECT_NEAR(guard.normal(), 1, 1e-9);
  EXPECT_EQ(send(1, 0, 1), Fate::kUsed);
  learn(3, 60, 10'000);
  EXPECT_NEAR(guard.normal(), 1, 1e-9);
  EXPECT_EQ(send(3, 1, 600), Fate::kRefused) << "its own tensors do not make it right";
}

TEST_F(NormGuardTest, OneOfTwoCannotMakeTheOthersTensorsTooLarge) {
  learn(1, 1, 8);
  learn(2, 1e-5, 10'000);
  EXPECT_EQ(send(1, 0, 1), Fate::kUsed);
}

TEST_F(NormGuardTest, TheWordOfOneSenderRefusesNothingAndRestsNobody) {
  learn(1, 1e-5, 10'000);
  std::uint64_t serial = 0;
  for (; serial < NormGuard::kLearntFrom; ++serial) EXPECT_EQ(send(2, serial, 1), Fate::kScaled);
  EXPECT_EQ(send(2, serial, 1), Fate::kUsed) << "it is known itself by now";
  EXPECT_FALSE(guard.rests(session(2), at(0s)));
}

TEST_F(NormGuardTest, ASessionThatIsOverSaysNothingMore) {
  two_at(1);
  learn(3, 1e4, 100);
  learn(4, 1e4, 100);
  EXPECT_NEAR(guard.normal(), 1e4, 1);
  guard.forget(session(3));
  guard.forget(session(4));
  EXPECT_NEAR(guard.normal(), 1, 1e-9);
  guard.forget({session(1).peer_tag, 77});
  EXPECT_NEAR(guard.normal(), 1, 1e-9) << "another session of that key";
  guard.used({session(1).peer_tag, 77}, 5);
  guard.forget(session(2));
  EXPECT_EQ(guard.normal(), 0) << "a new session begins anew";
}

TEST_F(NormGuardTest, APeerThatSendsTooLargeOnesRestsEverLonger) {
  two_at(1);
  TimePoint now = at(0s);
  for (std::uint32_t i = 1; i < NormGuard::kRefusalsMax; ++i)
    EXPECT_FALSE(guard.refused(session(2), microbatch(0), now));
  EXPECT_FALSE(guard.rests(session(2), now));
  EXPECT_TRUE(guard.refused(session(2), microbatch(0), now));
  EXPECT_FALSE(guard.rests(session(2), now)) << "it may be the last of its stage";
  EXPECT_TRUE(guard.refused(session(2), microbatch(0), now));
  EXPECT_EQ(guard.rest(session(2), now), kPeerRest.first);
  EXPECT_TRUE(guard.rests(session(2), now + 29s));
  EXPECT_FALSE(guard.rests(session(2), now + 30s));
  EXPECT_FALSE(guard.rests(session(1), now));
  EXPECT_FALSE(guard.refused(session(2), microbatch(0), now + 1s)) << "it rests already: one that was on its way";
  now += 31s;
  EXPECT_TRUE(guard.refused(session(2), microbatch(0), now));
  EXPECT_EQ(guard.rest(session(2), now), 2 * kPeerRest.first);
  for (int i = 0; i < 10; ++i) {
    now += kPeerRest.most;
    if (guard.refused(session(2), microbatch(0), now)) (void)guard.rest(session(2), now);
  }
  EXPECT_FALSE(guard.rests(session(2), now + kPeerRest.most));
}

TEST_F(NormGuardTest, AnotherSessionOfTheSameKeyIsTheSamePeer) {
  two_at(1);
  for (std::uint64_t serial = 0; serial < NormGuard::kRefusalsMax; ++serial) (void)send(2, serial, 1e30);
  EXPECT_TRUE(guard.rests(Session{session(2).peer_tag, 77}, at(1s)));
}

TEST_F(NormGuardTest, ARefusalIsForgottenByManyThatWereUsed) {
  two_at(1);
  (void)guard.refused(session(2), microbatch(0), at(0s));
  for (std::uint32_t i = 0; i < NormGuard::kForgivenBy; ++i) guard.used(session(2), 1);
  for (std::uint32_t i = 1; i < NormGuard::kRefusalsMax; ++i)
    EXPECT_FALSE(guard.refused(session(2), microbatch(0), at(1s)));
}

// Else a model whose gradients grew by a factor of a thousand would never train again.
TEST_F(NormGuardTest, AnEdgeThatGrewIsNotRefusedForEver) {
  two_at(1);
  int refusals = 0;
  for (std::uint64_t serial = 0; 1000 > guard.limit() && serial < 200; ++serial)
    for (int times = 0; send(1 + static_cast<std::uint64_t>(times) % 2, serial, 1000) == Fate::kRefused; ++times)
      ++refusals;
  EXPECT_GT(refusals, 5);
  EXPECT_LT(refusals, 100);
}

TEST_F(NormGuardTest, ManyPeersCostABoundedMemoryAndTheOldestIsForgotten) {
  two_at(1);
  const auto refuse_until_rest = [&](std::uint64_t tag, TimePoint now) {
    for (std::uint32_t i = 0; i < NormGuard::kRefusalsMax; ++i)
      if (guard.refused(session(tag), microbatch(0), now)) (void)guard.rest(session(tag), now);
  };
  refuse_until_rest(1'000'000, at(0s));
  for (std::uint64_t tag = 1; tag <= NormGuard::kSendersMax; ++tag) refuse_until_rest(tag, at(1s));
  EXPECT_FALSE(guard.rests(session(1'000'000), at(2s)));
  EXPECT_TRUE(guard.rests(session(NormGuard::kSendersMax), at(2s)));
}

// Else two tensors of next to nothing make all that is honest of this sender too large.
TEST_F(NormGuardTest, TinyTensorsDoNotMakeOrdinaryOnesTooLarge) {
  for (int i = 0; i < 3; ++i) guard.used(session(2), 1e-38);
  learn(2, 1, static_cast<int>(NormGuard::kLearntFrom) - 3);
  EXPECT_NEAR(guard.normal(), 1, 1e-9) << "three of the first eight";
  learn(2, 1, 100);
  for (int i = 0; i < 8; ++i) guard.used(session(2), 1e-38);
  EXPECT_LT(1, guard.limit());
}

// Its gradient is as large from every replica: the run would stand behind it.
TEST_F(NormGuardTest, AMicrobatchThatIsAnOutlierItselfIsScaledAtItsThirdTime) {
  two_at(1);
  for (std::uint64_t sender = 1; sender <= 2; ++sender) EXPECT_EQ(send(sender, 7, 1e30), Fate::kRefused);
  EXPECT_EQ(send(1, 8, 1e5), Fate::kRefused) << "another microbatch";
  EXPECT_EQ(send(1, 7, 1e30), Fate::kScaled);
  EXPECT_EQ(send(1, 7, 1e5), Fate::kRefused);
  for (std::uint64_t serial = 100; serial < 100 + NormGuard::kMicrobatchesMax; ++serial)
    for (int i = 0; i < NormGuard::kRefusedTwice; ++i) (void)guard.refused(session(2), microbatch(serial), at(0s));
  (void)guard.refused(session(2), microbatch(99), at(0s));
  EXPECT_EQ(send(1, 100, 1e5), Fate::kRefused) << "a bounded memory";
}

}  // namespace
}  // namespace shoal
