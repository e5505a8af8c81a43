// What members refuse: when a person hears of it, and when nothing of a run can come to anything any more.
#include "runtime/launch/refusal_watch.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr Duration kPatience = 30s;
constexpr std::uint16_t kStages = 2;

class RefusalWatchTest : public testing::Test {
 protected:
  RefusalWatchTest() {
    for (std::uint16_t k = 0; k < kStages; ++k) stages_.emplace_back().stage = StageId(k);
    for (StageStatus& stage : stages_) stage.serving = 2;
    for (int i = 0; i < 8; ++i) book_.issued(*book_.next());
  }
  static Session peer(std::uint64_t n) { return {n, 1}; }
  // So many passes of it failed at a peer of stage 1 so far.
  void refuse(std::uint64_t n, std::uint64_t serial, std::uint32_t times,
              RefusalCause cause = RefusalCause::kActivation) {
    std::erase_if(stages_[1].refused,
                  [&](const auto& one) { return one.first == peer(n) && one.second.serial == serial; });
    stages_[1].refused.emplace_back(peer(n), RefusedMicrobatch{serial, cause, times});
  }
  void all_refuse(std::uint64_t below, std::uint32_t times, RefusalCause cause = RefusalCause::kActivation) {
    for (std::uint64_t serial = 0; serial < below; ++serial)
      for (const std::uint64_t n : {1u, 2u}) refuse(n, serial, times, cause);
  }
  void commit(std::uint64_t serial) {
    Gradient gradient;
    gradient.path.resize(kStages);
    gradient.path[0] = {peer(9), serial};
    gradient.path[1] = {peer(1), serial};
    gradient.targets = 1;
    (void)book_.log({1, serial}, gradient);
    (void)book_.durable({1, serial});
  }
  std::vector<std::string> look() { return watch_.take(stages_, book_, kPatience, now_); }
  // Nothing else happens for the patience.
  bool hopeless() {
    look();
    now_ += kPatience;
    look();
    return watch_.hopeless(now_);
  }

  std::vector<StageStatus> stages_;
  CommitBook book_{1, kStages};
  RefusalWatch watch_;
  TimePoint now_ = TimePoint{} + 1s;
};

TEST_F(RefusalWatchTest, WhenTwoPeersRefuseMoreThanHalfOfWhatIsOpenFromTheLowestOnTheRunIsHopeless) {
  all_refuse(5, RefusalWatch::kTimes);
  const auto lines = look();
  EXPECT_EQ(lines.size(), 2u) << "one of the stage's cause, and one of the end";
  EXPECT_NE(lines.back().find("ends in 30 s"), std::string::npos) << lines.back();
  EXPECT_FALSE(watch_.hopeless(now_ + kPatience - 1s));
  EXPECT_TRUE(watch_.hopeless(now_ + kPatience));
  EXPECT_EQ(watch_.all(),
            "stage 1 refuses microbatch 0 and what else is under way: an activation is not finite (2 of its 2 peers, 6 "
            "passes since the last commit)");
}

TEST_F(RefusalWatchTest, ALoneBadMicrobatchIsSaidAndEndsNothingWhileOthersAreUnderWay) {
  all_refuse(1, 1000, RefusalCause::kGradient);
  const auto lines = look();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("refuses microbatch 0: a gradient is not finite"), std::string::npos) << lines[0];
  EXPECT_TRUE(look().empty()) << "nothing new";
  all_refuse(1, 1001, RefusalCause::kGradient);
  EXPECT_TRUE(look().empty()) << "throttled";
  now_ += LogThrottle::kInterval;
  all_refuse(1, 1002, RefusalCause::kGradient);
  EXPECT_EQ(look().size(), 1u);
  EXPECT_FALSE(hopeless());
  ASSERT_EQ(watch_.passes().size(), 1u);
  EXPECT_EQ(watch_.passes().begin()->first, std::pair(StageId(1), std::string("a gradient is not finite")));
  EXPECT_EQ(watch_.passes().begin()->second, 2004u);
}

TEST_F(RefusalWatchTest, ALoneBadMicrobatchEndsTheRunWhenNothingElseIsLeft) {
  for (std::uint64_t serial = 1; serial < 8; ++serial) commit(serial);
  all_refuse(1, 7);
  EXPECT_FALSE(hopeless()) << "as far as is known these were before the last commit";
  all_refuse(1, 7 + RefusalWatch::kTimes);
  EXPECT_TRUE(hopeless());
}

TEST_F(RefusalWatchTest, OneBadReplicaOfSeveralEndsNothing) {
  for (std::uint64_t serial = 0; serial < 8; ++serial) refuse(1, serial, 1000);
  EXPECT_FALSE(hopeless());
  stages_[1].serving = 1;
  EXPECT_TRUE(hopeless()) << "it is the only one";
}

TEST_F(RefusalWatchTest, WhatIsCommittedMeanwhileBeginsTheCountAnew) {
  all_refuse(8, 1000);
  look();
  now_ += kPatience - 1s;
  commit(7);
  look();
  now_ += kPatience;
  look();
  EXPECT_FALSE(watch_.hopeless(now_)) << "no pass failed since";
  all_refuse(7, 1000 + RefusalWatch::kTimes);
  EXPECT_TRUE(hopeless());
}

TEST_F(RefusalWatchTest, MemoryAndUnusableInputSayNothingOfTheRunsNumbers) {
  for (const RefusalCause cause : {RefusalCause::kMemory, RefusalCause::kOther}) {
    all_refuse(8, 1000, cause);
    EXPECT_FALSE(hopeless());
  }
}

TEST_F(RefusalWatchTest, TheOptionsToChangeAreThoseThatTheRunHasSet) {
  RunConfig config;
  config.optimizer.lr = 0.5;
  EXPECT_EQ(smaller_numbers_text(config), "a lower [optimizer] lr than 0.5");
  config.compute.dtype = ComputeType::kBf16;
  config.wire.forward.codecs = {CodecId::kFp16};
  config.wire.backward.codecs = {CodecId::kInt4};
  EXPECT_EQ(smaller_numbers_text(config),
            "[wire] forward = \"bf16\", or [wire] backward = \"raw\", or [compute] dtype = \"fp32\", or a lower "
            "[optimizer] lr than 0.5");
}

}  // namespace
}  // namespace shoal
