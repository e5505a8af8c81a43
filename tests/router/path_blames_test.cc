// Against which sessions forged paths are held: what the trainer sees is the path alone.
#include "router/path_blames.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/rng.h"
#include "tests/router/names.h"

namespace shoal {
namespace {

using namespace naming;

constexpr int kStages = 3, kReplicas = 3;

// Three stages of three, and one session that lies about a part of what it hands on.
class PathBlamesTest : public testing::Test {
 protected:
  PathBlamesTest() {
    MemberList list;
    list.epoch = Epoch(1);
    for (int stage = 0; stage < kStages; ++stage) {
      StageMembers& members = list.stages.emplace_back();
      members.stage = StageId(static_cast<std::uint16_t>(stage));
      for (int replica = 0; replica < kReplicas; ++replica) members.members.push_back(member(tag_of(stage, replica)));
    }
    roster.update(list);
  }
  static std::uint64_t tag_of(int stage, int replica) { return static_cast<std::uint64_t>(10 * (stage + 1) + replica); }
  std::vector<EntryName> path() {
    std::vector<EntryName> path;
    for (int stage = 0; stage < kStages; ++stage)
      path.push_back(entry_name(tag_of(stage, static_cast<int>(rng.below(kReplicas))), ++serial));
    return path;
  }
  std::optional<Session> forged(const std::vector<EntryName>& path, std::size_t bad) {
    return blames.forged(path, bad, roster, [](const Session&) { return true; });
  }
  // Until somebody is the culprit: how many forged paths that took.
  struct Found {
    std::optional<Session> who;
    int forged_paths = 0;
  };
  Found run(std::uint64_t liar, std::size_t liar_stage, double share) {
    Found found;
    for (int i = 0; i < 100'000 && !found.who; ++i) {
      const auto each = path();
      if (each[liar_stage].session != session(liar) || rng.uniform() >= share) {
        blames.whole(each, roster);
        continue;
      }
      ++found.forged_paths;
      // It changes what stands behind itself; the last one can only make its own tag wrong.
      found.who = forged(each, std::min<std::size_t>(liar_stage + 1, kStages - 1));
    }
    return found;
  }

  Rng rng{1};
  std::uint64_t serial = 0;
  Roster roster;
  PathBlames blames;
};

TEST_F(PathBlamesTest, ASessionsOwnElementOfStageZeroIsItsOwnLie) {
  const auto each = path();
  EXPECT_EQ(forged(each, 0), each[0].session);
}

TEST_F(PathBlamesTest, FindTheLiarOfAnyStageSoonAndNobodyElse) {
  for (const double share : {1.0, 0.3, 0.05})
    for (int stage = 0; stage < kStages; ++stage)
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        rng = Rng(seed);
        blames = PathBlames();
        const Found found = run(tag_of(stage, 1), static_cast<std::size_t>(stage), share);
        EXPECT_EQ(found.who, session(tag_of(stage, 1)))
            << "stage " << stage << ", share " << share << ", seed " << seed;
        EXPECT_LE(found.forged_paths, 12);
      }
}

// It names one and the same honest session in each.
TEST_F(PathBlamesTest, ALiarThatPutsItOnAnotherIsTheOneNearerToTheTrainer) {
  std::optional<Session> who;
  int times = 0;
  while (!who && times < 100) {
    auto each = path();
    each[0] = entry_name(tag_of(0, 0), ++serial);
    each[1] = entry_name(tag_of(1, 2), ++serial);
    ++times;
    who = forged(each, 1);
  }
  EXPECT_EQ(who, session(tag_of(0, 0)));
  EXPECT_EQ(times, static_cast<int>(PathBlames::kForgedSure));
}

TEST_F(PathBlamesTest, WhatIsExplainedIsHeldAgainstNobodyElse) {
  ASSERT_TRUE(run(tag_of(0, 1), 0, 1.0).who);
  blames.forget(session(tag_of(0, 1)));
  for (int i = 0; i < 2; ++i) {
    auto each = path();
    each[0].session = session(tag_of(0, 0));
    EXPECT_EQ(forged(each, 1), std::nullopt) << "two more are not three";
  }
}

// What an earlier session of it left behind at the honest ones is not more than what is new at it.
TEST_F(PathBlamesTest, ALiarThatComesAgainIsFoundAgainAndNobodyElse) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    rng = Rng(seed);
    blames = PathBlames();
    for (int i = 0; i < 30; ++i) blames.whole(path(), roster);
    for (int life = 0; life < 3; ++life) {
      ASSERT_EQ(run(tag_of(0, 1), 0, 1.0).who, session(tag_of(0, 1))) << "seed " << seed << ", life " << life;
      for (int i = 0; i < 2; ++i) {  // that were on their way
        auto each = path();
        each[0].session = session(tag_of(0, 1));
        ASSERT_EQ(forged(each, 1), std::nullopt);
      }
      blames.forget(session(tag_of(0, 1)));
    }
  }
}

// Paths of it are still on their way when its session has ended for others.
TEST_F(PathBlamesTest, NobodyIsBlamedForWhatASessionThatEndedHadAHandIn) {
  for (int i = 0; i < 50; ++i) {
    auto each = path();
    each[0].session = session(tag_of(0, 0));
    each[1].session = session(98);
    EXPECT_EQ(forged(each, 2), std::nullopt);
  }
}

TEST_F(PathBlamesTest, NobodyIsBlamedForASessionThatIsNoMemberOfItsStage) {
  for (int i = 0; i < 50; ++i) {
    std::vector<EntryName> each = {entry_name(99, 1), entry_name(98, 2), entry_name(tag_of(0, 0), 3)};
    EXPECT_EQ(forged(each, 2), std::nullopt);
  }
  EXPECT_EQ(blames.forged_paths(), 50u);
}

// Paths that a session had a hand in come whole after its end, too.
TEST_F(PathBlamesTest, ASessionThatEndedHasNoRecordAgain) {
  auto each = path();
  blames.whole(each, roster);
  EXPECT_EQ(blames.sessions(), each.size());
  each[1].session = session(98);
  blames.whole(each, roster);
  EXPECT_EQ(blames.sessions(), each.size());
}

}  // namespace
}  // namespace shoal
