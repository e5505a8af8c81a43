// The directory over the simulated table: what takes minutes or strangers.
#include "sim/sim_directory.h"

#include <gtest/gtest.h>

#include "sim/sim_loop.h"
#include "sim/sim_storage.h"
#include "tests/dht/records.h"

namespace shoal {
namespace {

class SimDirectoryTest : public ::testing::Test {
 protected:
  std::unique_ptr<DhtDirectory> make(std::uint64_t seed, Storage* storage = nullptr) {
    DhtDirectoryOptions options;
    options.run = run_of(run_);
    options.seed = seed;
    if (storage != nullptr) options.cache_path = "peers.cache";
    return make_sim_directory(dht_, loop_, storage, std::move(options));
  }
  std::string text(const KeyPair& peer, std::uint64_t sequence, WallTime made) {
    return packed(peer_record(run_, peer, 0, sequence, made), peer);
  }
  std::vector<PeerRecord> look_up(DhtDirectory& directory, Duration budget = 5s) {
    std::optional<std::vector<PeerRecord>> answer;
    directory.look_up_stage(StageId(0), budget, [&](std::vector<PeerRecord> records) { answer = std::move(records); });
    EXPECT_TRUE(loop_.run_until_true([&] { return answer.has_value(); }, loop_.now() + budget));
    return answer.value_or(std::vector<PeerRecord>());
  }
  const KeyPair run_ = key_of_number(1), ann_ = key_of_number(2), ben_ = key_of_number(3);
  const std::string key_ = stage_key(run_of(run_), StageId(0));
  SimLoop loop_{kTestWall};
  SimDht dht_{loop_, 1};
};

TEST_F(SimDirectoryTest, APeerThatDiedIsForgottenByItsRecordsOwnTime) {
  auto a = make(1), b = make(2);
  a->announce(text(ann_, 1, loop_.wall()), key_);
  loop_.run_for(1s);
  ASSERT_EQ(look_up(*b).size(), 1u);
  a.reset();
  loop_.run_for(kRecordTtl);
  EXPECT_EQ(look_up(*b).size(), 1u) << "within the allowance for clocks";
  loop_.run_for(kClockSkewMax);
  EXPECT_TRUE(b->known(10).empty());
}

TEST_F(SimDirectoryTest, HowOftenTheDhtWentAwayLatelyIsCounted) {
  auto a = make(1);
  loop_.run_for(1s);
  EXPECT_EQ(a->falls(), 0u);
  for (int i = 0; i < 3; ++i) {
    dht_.set_outage(true);
    loop_.run_for(1s);
    dht_.set_outage(false);
    loop_.run_for(1s);
  }
  EXPECT_EQ(a->falls(), 3u);
  loop_.run_for(kFallsWindow);
  EXPECT_EQ(a->falls(), 0u);
}

TEST_F(SimDirectoryTest, HowARunStandsIsFoundPartByPart) {
  auto a = make(1), b = make(2);
  StandingRecord standing;
  standing.run = run_of(run_);
  standing.peers.assign(40, MemberRow{});
  standing.sequence = 5;
  standing.expires = loop_.wall() + kRecordTtl;
  const auto parts = pack_standing(standing, run_);
  ASSERT_TRUE(parts.ok());
  ASSERT_GT(parts->size(), 1u);
  for (std::size_t part = 0; part < parts->size(); ++part)
    a->announce((*parts)[part], standing_key(standing.run, static_cast<std::uint16_t>(part)));
  loop_.run_for(1s);
  std::size_t rows = 0, answers = 0;
  for (std::size_t part = 0; part < parts->size(); ++part)
    b->look_up_standing(static_cast<std::uint16_t>(part), 5s, [&](const Result<StandingRecord>& found) {
      ++answers;
      ASSERT_TRUE(found.ok()) << found.error().message;
      rows += found->peers.size();
    });
  EXPECT_TRUE(loop_.run_until_true([&] { return answers == parts->size(); }, loop_.now() + 6s));
  EXPECT_EQ(rows, 40u);
}

TEST_F(SimDirectoryTest, AKeyThatWasLookedUpIsReadAgainByItself) {
  auto a = make(1), b = make(2);
  loop_.run_for(1s);
  EXPECT_TRUE(look_up(*b).empty());
  a->announce(text(ann_, 1, loop_.wall()), key_);
  loop_.run_for(36s);  // TTL/2 and its jitter
  EXPECT_EQ(b->known(10).size(), 1u);
}

TEST_F(SimDirectoryTest, ARecordThatNobodyRefreshesIsNotKeptInTheDht) {
  auto a = make(1);
  loop_.run_for(1s);
  a->announce(text(ann_, 1, loop_.wall()), key_);
  loop_.run_for(60s);
  EXPECT_EQ(dht_.values(key_).size(), 1u);
  loop_.run_for(160s);  // its end, the next refresh, and what the holders keep
  EXPECT_TRUE(dht_.values(key_).empty());
}

TEST_F(SimDirectoryTest, WhatIsWithdrawnIsForgottenByTheDht) {
  auto a = make(1);
  loop_.run_for(1s);
  a->announce(text(ann_, 1, loop_.wall()), key_);
  loop_.run_for(1s);
  a->withdraw(key_);
  loop_.run_for(kRecordTtl + 1s);
  EXPECT_TRUE(dht_.values(key_).empty());
}

TEST_F(SimDirectoryTest, ExpiredRecordsOfTheCacheAreHintsWhenNothingElseIsThere) {
  SimDisk disk;
  SimStorage storage(loop_, disk);
  auto a = make(1, &storage);
  a->offer({text(ann_, 1, loop_.wall())});
  loop_.run_for(5s);
  a.reset();
  loop_.run_for(1s);
  dht_.set_outage(true);
  loop_.run_for(std::chrono::hours(2));
  auto later = make(2, &storage);
  const auto hints = look_up(*later);
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_FALSE(is_live(hints[0].expires, loop_.wall()));
  EXPECT_TRUE(later->known(10).empty()) << "not passed on to others";
}

TEST_F(SimDirectoryTest, ATamperedCacheIsRefusedLineByLine) {
  SimDisk disk;
  SimStorage storage(loop_, disk);
  std::string forged = text(ann_, 1, loop_.wall());
  forged.replace(forged.find("\"seq\":1"), 7, "\"seq\":2");
  const std::string file = "{\"shoal_cache\":1}\n" + forged + "\n" + text(ben_, 1, loop_.wall()) + "\n";
  disk.put("peers.cache", {file.begin(), file.end()});
  auto a = make(1, &storage);
  EXPECT_EQ(a->known(10), std::vector<std::string>{text(ben_, 1, loop_.wall())});
  EXPECT_EQ(a->counters().corrupt, 1u);
}

TEST_F(SimDirectoryTest, StrangersValuesAreCountedAndNotSeen) {
  auto a = make(1);
  a->announce(text(ann_, 7, loop_.wall()), key_);
  loop_.run_for(1s);
  std::string forged = text(ann_, 8, loop_.wall());
  forged.replace(forged.find("\"seq\":8"), 7, "\"seq\":9");
  dht_.inject(key_, 100, forged);
  dht_.inject(key_, 101, text(ann_, 6, loop_.wall()));  // replay
  dht_.inject(key_, 102, std::string(513, '{'));
  dht_.inject(key_, 103, "not json");
  dht_.inject(key_, 104, text(ben_, 1, loop_.wall() - kRecordTtl - kClockSkewMax));  // expired
  const KeyPair other = key_of_number(9);
  dht_.inject(key_, 105, packed(peer_record(other, ben_, 0, 1, loop_.wall()), ben_));
  auto b = make(2);
  loop_.run_for(1s);
  b->offer({text(ann_, 7, loop_.wall() - 1s)});
  const auto seen = look_up(*b);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].sequence, 7u);
  EXPECT_EQ(b->counters().corrupt, 1u);
  EXPECT_EQ(b->counters().too_large, 1u);
  EXPECT_EQ(b->counters().malformed, 1u);
  EXPECT_EQ(b->counters().foreign, 1u);
  EXPECT_GE(b->counters().stale, 2u);
}

TEST_F(SimDirectoryTest, LostAnswersAreAskedForAgainWithinTheBudget) {
  auto a = make(1), b = make(2);
  a->announce(text(ann_, 1, loop_.wall()), key_);
  loop_.run_for(1s);
  dht_.set_answer_loss(1.0);
  std::optional<std::size_t> count;
  b->look_up_stage(StageId(0), 5s, [&](std::vector<PeerRecord> records) { count = records.size(); });
  loop_.run_for(200ms);
  ASSERT_FALSE(count.has_value());
  dht_.set_answer_loss(0);
  EXPECT_TRUE(loop_.run_until_true([&] { return count.has_value(); }, loop_.now() + 5s));
  EXPECT_EQ(*count, 1u);
}

// The DHT's own serial has 16 bits and may not wrap: before it does, the record goes on under another value id.
TEST_F(SimDirectoryTest, ALongLifeOfAnnouncementsOutlivesTheNarrowSerial) {
  DhtDirectoryOptions options;
  options.run = run_of(run_);
  options.serial_max = 40;
  auto a = make_sim_directory(dht_, loop_, nullptr, std::move(options)), b = make(2);
  loop_.run_for(1s);
  for (std::uint64_t sequence = 1; sequence <= 100; ++sequence) {
    loop_.run_for(1s);
    a->announce(text(ann_, sequence, loop_.wall()), key_);
  }
  loop_.run_for(5s);
  const auto seen = look_up(*b);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].sequence, 100u);
  a->announce(text(ann_, 101, loop_.wall()), key_);
  loop_.run_for(kRecordTtl);
  EXPECT_EQ(dht_.values(key_).size(), 1u) << "the value under the id before was withdrawn";
}

TEST_F(SimDirectoryTest, EndsSafelyWithLookUpsUnderWay) {
  auto a = make(1);
  loop_.run_for(1s);
  int answers = 0;
  a->look_up_stage(StageId(0), 5s, [&](std::vector<PeerRecord>) { ++answers; });
  a->look_up_run(5s, [&](Result<RunRecord>) { ++answers; });
  a.reset();
  loop_.run_for(10s);
  EXPECT_EQ(answers, 0);
}

TEST_F(SimDirectoryTest, TheSameSeedTakesTheSameCourse) {
  const auto course = [this](std::uint64_t seed) {
    SimLoop loop{kTestWall};
    SimDht dht{loop, seed};
    DhtDirectoryOptions options;
    options.run = run_of(run_);
    options.seed = seed;
    auto a = make_sim_directory(dht, loop, nullptr, options);
    options.seed = seed + 1;
    auto b = make_sim_directory(dht, loop, nullptr, options);
    a->announce(text(ann_, 1, loop.wall()), key_);
    b->look_up_stage(StageId(0), 5s, [](std::vector<PeerRecord>) {});
    loop.run_for(20s);
    dht.set_outage(true);
    loop.run_for(20s);
    dht.set_outage(false);
    loop.run_for(60s);
    return loop.trace_hash();
  };
  EXPECT_EQ(course(5), course(5));
  EXPECT_NE(course(5), course(6));
}

}  // namespace
}  // namespace shoal
