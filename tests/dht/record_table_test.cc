#include "dht/record_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/dht/records.h"
#include "transport/limits.h"

namespace shoal {
namespace {

class RecordTableTest : public ::testing::Test {
 protected:
  std::string text(std::uint8_t peer, std::uint16_t stage, std::uint64_t sequence, WallTime made = kTestWall) const {
    const KeyPair key = key_of_number(peer);
    return packed(peer_record(run_, key, stage, sequence, made), key);
  }
  const KeyPair run_ = key_of_number(1);
  RecordTable table_{run_of(run_), Rng(1)};
};

TEST_F(RecordTableTest, TheHighestSequenceWinsAndAReplayIsRefused) {
  ASSERT_TRUE(table_.offer(text(2, 0, 10), kTestWall).value());
  EXPECT_TRUE(table_.offer(text(2, 0, 12), kTestWall).value());
  EXPECT_FALSE(table_.offer(text(2, 0, 12), kTestWall).value()) << "known already";
  EXPECT_EQ(table_.offer(text(2, 0, 10), kTestWall).code(), ErrorCode::kStale);
  EXPECT_EQ(table_.stage(StageId(0), kTestWall).at(0).sequence, 12u);
  EXPECT_EQ(table_.counters().accepted, 2u);
  EXPECT_EQ(table_.counters().unchanged, 1u);
  EXPECT_EQ(table_.counters().stale, 1u);
}

TEST_F(RecordTableTest, AReplayIsRefusedAlsoWhenTheNewestHasExpired) {
  ASSERT_TRUE(table_.offer(text(2, 0, 12), kTestWall).ok());
  const WallTime later = kTestWall + kRecordTtl + kClockSkewMax + 1s;
  EXPECT_TRUE(table_.stage(StageId(0), later).empty());
  EXPECT_EQ(table_.offer(text(2, 0, 11, later), later).code(), ErrorCode::kStale);
}

TEST_F(RecordTableTest, AClockThatIsFarOffIsNamedWithHowFar) {
  EXPECT_EQ(table_.clocks_apart(), "");
  struct Case {
    Duration ours_behind;
    std::string words;  // after "the clocks of 2 others are "
  };
  for (const Case& one :
       {Case{31s, "31 s or more ahead of this machine's"}, Case{600s, "600 s or more ahead of this machine's"},
        Case{-91s, "91 s or more behind this machine's"}, Case{-600s, "600 s or more behind this machine's"}}) {
    RecordTable table(run_of(run_), Rng(1));
    const WallTime ours = kTestWall - one.ours_behind;
    EXPECT_FALSE(table.offer(text(2, 0, 1), ours).ok());
    EXPECT_EQ(table.clocks_apart().find("the clock of "), 0u) << table.clocks_apart();
    EXPECT_FALSE(table.offer(text(3, 0, 1), ours).ok());
    EXPECT_EQ(table.clocks_apart(), "the clocks of 2 others are " + one.words);
    EXPECT_TRUE(table.offer(text(2, 0, 2, ours), ours).ok()) << "it was set right";
    EXPECT_TRUE(table.offer(text(3, 0, 2, ours), ours).ok());
  }
}

TEST_F(RecordTableTest, TheLastRecordOfWhoIsGoneSaysNothingOfClocks) {
  const WallTime later = kTestWall + kRecordTtl + kClockSkewMax + 20s;
  ASSERT_TRUE(table_.offer(text(3, 0, 1, later), later).ok());
  EXPECT_FALSE(table_.offer(text(2, 0, 1), later).ok());
  EXPECT_EQ(table_.clocks_apart(), "");
}

TEST_F(RecordTableTest, APeerThatMovedIsSeenAtItsNewStageOnly) {
  ASSERT_TRUE(table_.offer(text(2, 0, 10), kTestWall).ok());
  ASSERT_TRUE(table_.offer(text(2, 1, 11), kTestWall).ok());
  EXPECT_TRUE(table_.stage(StageId(0), kTestWall).empty());
  EXPECT_EQ(table_.stage(StageId(1), kTestWall).size(), 1u);
}

TEST_F(RecordTableTest, ExpiresByTheRecordsOwnTime) {
  ASSERT_TRUE(table_.offer(text(2, 0, 10), kTestWall).ok());
  const WallTime end = kTestWall + kRecordTtl + kClockSkewMax;
  EXPECT_EQ(table_.stage(StageId(0), end - 1s).size(), 1u);
  EXPECT_TRUE(table_.stage(StageId(0), end).empty());
  EXPECT_TRUE(table_.live_texts(10, end).empty());
  EXPECT_EQ(table_.remembered_stage(StageId(0), end).size(), 1u) << "a hint where to dial";
  EXPECT_TRUE(table_.remembered_stage(StageId(0), kTestWall + kRecordTtl + kRememberedFor).empty());
}

TEST_F(RecordTableTest, RefusesTheExpiredAndTheFuture) {
  EXPECT_EQ(table_.offer(text(2, 0, 1), kTestWall + kRecordTtl + kClockSkewMax).code(), ErrorCode::kStale);
  EXPECT_EQ(table_.offer(text(2, 0, 1, kTestWall + kClockSkewMax + 1s), kTestWall).code(), ErrorCode::kStale);
  EXPECT_EQ(table_.size(), 0u);
}

// What is the same word for word costs no signature: not even its expiry is looked at again.
TEST_F(RecordTableTest, WhatIsHeldWordForWordIsNotReadAgainAndWhatWentIs) {
  const std::string held = text(2, 0, 10);
  ASSERT_TRUE(table_.offer(held, kTestWall).value());
  const WallTime later = kTestWall + kRecordTtl + kClockSkewMax;
  const auto again = table_.offer(held, later);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_FALSE(*again);
  EXPECT_EQ(table_.counters().unchanged, 1u);
  ASSERT_TRUE(table_.offer(text(2, 0, 11, later), later).value());
  EXPECT_EQ(table_.offer(held, later).code(), ErrorCode::kStale) << "another one took its place";
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < limits::kReplicasMax; ++i) {
    const KeyPair key = KeyPair::generate();
    texts.push_back(packed(peer_record(run_, key, 0, 1, later), key));
    ASSERT_TRUE(table_.offer(texts.back(), later).value());
  }
  texts.push_back(text(2, 0, 11, later));
  EXPECT_GE(
      std::count_if(texts.begin(), texts.end(), [&](const auto& one) { return table_.offer(one, later).value(); }), 1)
      << "one of them had made room";
}

TEST_F(RecordTableTest, CountsWhatItRefusesByCause) {
  EXPECT_EQ(table_.offer("{}", kTestWall).code(), ErrorCode::kMalformed);
  EXPECT_EQ(table_.offer(std::string(513, 'x'), kTestWall).code(), ErrorCode::kTooLarge);
  std::string forged = text(2, 0, 1);
  forged.replace(forged.find("\"seq\":1"), 7, "\"seq\":2");
  EXPECT_EQ(table_.offer(forged, kTestWall).code(), ErrorCode::kCorrupt);
  const KeyPair other = key_of_number(9), peer = key_of_number(2);
  EXPECT_EQ(table_.offer(packed(peer_record(other, peer, 0, 1, kTestWall), peer), kTestWall).code(),
            ErrorCode::kForeign);
  EXPECT_EQ(table_.counters().malformed, 1u);
  EXPECT_EQ(table_.counters().too_large, 1u);
  EXPECT_EQ(table_.counters().corrupt, 1u);
  EXPECT_EQ(table_.counters().foreign, 1u);
  EXPECT_EQ(table_.counters().refused(), 4u);
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(RecordTableTest, KnownIsTheRunThenTheNewestAndNoMoreThanAsked) {
  ASSERT_TRUE(table_.offer(text(2, 0, 1, kTestWall - 20s), kTestWall).ok());
  ASSERT_TRUE(table_.offer(text(3, 1, 1, kTestWall), kTestWall).ok());
  ASSERT_TRUE(table_.offer(text(4, 2, 1, kTestWall - 10s), kTestWall).ok());
  const std::string run = packed(run_record(run_, 1, kTestWall - 30s), run_);
  ASSERT_TRUE(table_.offer(run, kTestWall).ok());
  EXPECT_EQ(table_.live_texts(10, kTestWall),
            (std::vector<std::string>{run, text(3, 1, 1, kTestWall), text(4, 2, 1, kTestWall - 10s),
                                      text(2, 0, 1, kTestWall - 20s)}));
  EXPECT_EQ(table_.live_texts(2, kTestWall), (std::vector<std::string>{run, text(3, 1, 1, kTestWall)}));
}

TEST_F(RecordTableTest, TheRunsRecordIsTheNewest) {
  ASSERT_TRUE(table_.offer(packed(run_record(run_, 7, kTestWall), run_), kTestWall).ok());
  EXPECT_EQ(table_.offer(packed(run_record(run_, 6, kTestWall), run_), kTestWall).code(), ErrorCode::kStale);
  EXPECT_EQ(table_.run_record(kTestWall)->sequence, 7u);
}

// Keys cost nothing, so anybody can fill a stage; honest peers announce again and again and must get in.
TEST_F(RecordTableTest, AFloodDoesNotKeepAnHonestPeerOutNorGrowTheTable) {
  for (std::size_t i = 0; i < limits::kReplicasMax + 50; ++i) {
    const KeyPair key = KeyPair::generate();
    ASSERT_TRUE(table_.offer(packed(peer_record(run_, key, 0, 1, kTestWall), key), kTestWall).ok());
  }
  EXPECT_EQ(table_.stage(StageId(0), kTestWall).size(), limits::kReplicasMax);
  EXPECT_TRUE(table_.offer(text(2, 0, 5), kTestWall).value());
  EXPECT_EQ(table_.stage(StageId(0), kTestWall).size(), limits::kReplicasMax);
  ASSERT_TRUE(table_.offer(text(3, 1, 1), kTestWall).ok());
  EXPECT_EQ(table_.stage(StageId(1), kTestWall).size(), 1u) << "another stage is not crowded out";
}

TEST_F(RecordTableTest, TheExpiredMakeRoomFirst) {
  for (std::size_t i = 0; i < limits::kReplicasMax; ++i) {
    const KeyPair key = KeyPair::generate();
    ASSERT_TRUE(table_.offer(packed(peer_record(run_, key, 0, 1, kTestWall), key), kTestWall).ok());
  }
  const WallTime later = kTestWall + kRecordTtl + kClockSkewMax;
  ASSERT_TRUE(table_.offer(text(2, 0, 5, later), later).ok());
  ASSERT_TRUE(table_.offer(text(3, 0, 5, later), later).ok());
  EXPECT_EQ(table_.stage(StageId(0), later).size(), 2u);
}

TEST_F(RecordTableTest, RestoresWhatIsAtMostADayOld) {
  EXPECT_TRUE(table_.restore(text(2, 0, 1), kTestWall + std::chrono::hours(23)).ok());
  EXPECT_EQ(table_.restore(text(3, 0, 1), kTestWall + std::chrono::hours(25)).code(), ErrorCode::kStale);
}

}  // namespace
}  // namespace shoal
