#include "authority/unreachable_pairs.h"

#include <gtest/gtest.h>

#include "tests/sync/sync_fixtures.h"

namespace shoal {
namespace {

using test::peer_of;
using Blames = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // by, silent

class UnreachablePairsTest : public testing::Test {
 protected:
  // Of an attempt of those that are named, and of `others`.
  std::vector<PeerId> fail(const Blames& blames, std::map<std::uint64_t, std::uint64_t> settled = {},
                           const std::set<std::uint64_t>& others = {}, std::size_t owners = 1) {
    std::vector<UnreachablePairs::Blame> said;
    std::set<PeerId> members;
    for (const std::uint64_t n : others) members.insert(peer_of(n));
    for (const auto& [by, silent] : blames) {
      said.push_back({peer_of(by), peer_of(silent)});
      members.insert({peer_of(by), peer_of(silent)});
    }
    std::map<PeerId, std::uint64_t> targets;
    for (const auto& [peer, count] : settled) targets[peer_of(peer)] = count;
    std::vector<PeerId> out;
    apart = 0;
    for (const auto& made : book.on_attempt_failed(
             said, members, owners, [&](const PeerId& peer) { return targets[peer]; }, now))
      made.out ? out.push_back(made.peer) : void(++apart);
    return out;
  }
  bool rests(std::uint64_t n) const { return book.rests(peer_of(n), now); }
  bool doubted(std::uint64_t n) const { return book.doubted(peer_of(n)); }
  void try_now(const std::set<std::uint64_t>& brought_all) {
    book.try_now(now, [&](const PeerId& peer) {
      return std::ranges::any_of(brought_all, [&](std::uint64_t n) { return peer_of(n) == peer; });
    });
  }
  static std::set<PeerId> peers(const std::vector<std::uint64_t>& numbers) {
    std::set<PeerId> named;
    for (const auto n : numbers) named.insert(peer_of(n));
    return named;
  }
  void commit(const std::vector<std::uint64_t>& agreed, const std::vector<std::uint64_t>& present) {
    book.on_commit(peers(agreed), peers(agreed), peers(present));
  }

  UnreachablePairs book;
  std::size_t apart = 0;  // pairs that the newest attempt took the parts from
  TimePoint now{1000s};
};

TEST_F(UnreachablePairsTest, OneBlamedAttemptLeavesNobodyOutAndTwoInARowDo) {
  EXPECT_TRUE(fail({{1, 2}, {2, 1}}).empty());
  EXPECT_FALSE(rests(1) || rests(2));
  EXPECT_EQ(fail({{1, 2}, {2, 1}}).size(), 1u);
  EXPECT_TRUE(rests(1) != rests(2)) << "one of the two";
}

TEST_F(UnreachablePairsTest, AnAttemptWithOtherBlamesBetweenThemBeginsAnew) {
  fail({{1, 2}});
  fail({{3, 4}});
  EXPECT_TRUE(fail({{1, 2}}).empty());
}

TEST_F(UnreachablePairsTest, TheMostBlamedOneGoesThenTheOneWithTheLeastToBring) {
  for (int i = 0; i < 2; ++i) fail({{1, 3}, {2, 3}, {3, 1}});
  EXPECT_TRUE(rests(3));
  EXPECT_FALSE(rests(1) || rests(2));
  for (int i = 0; i < 2; ++i) fail({{5, 6}, {6, 5}}, {{5, 40}, {6, 80}});
  EXPECT_TRUE(rests(5));
  EXPECT_FALSE(rests(6));
}

TEST_F(UnreachablePairsTest, OfTwoPairsOneMemberGoesAndWhatIsLeftOfItsPairAddsUpForTheOther) {
  for (int i = 0; i < 2; ++i) fail({{1, 2}, {2, 1}, {3, 4}, {4, 3}}, {{1, 1}, {2, 2}, {3, 3}, {4, 4}});
  EXPECT_TRUE(rests(1));
  EXPECT_FALSE(rests(2) || rests(3) || rests(4));
  EXPECT_EQ(book.apart(now), (std::vector<std::pair<PeerId, PeerId>>{std::minmax(peer_of(3), peer_of(4))}));
}

TEST_F(UnreachablePairsTest, BesideAThirdTheTwoAreApartAndNobodyRests) {
  EXPECT_TRUE(fail({{1, 2}, {2, 1}}, {}, {3}).empty());
  EXPECT_TRUE(book.apart(now).empty()) << "once";
  EXPECT_TRUE(fail({{1, 2}, {2, 1}}, {}, {3}).empty());
  EXPECT_EQ(apart, 1u);
  EXPECT_FALSE(rests(1) || rests(2) || doubted(1) || doubted(2));
  EXPECT_EQ(book.apart(now).size(), 1u);
  commit({1, 2, 3}, {1, 2, 3});
  EXPECT_TRUE(book.apart(now).empty()) << "they met";
}

TEST_F(UnreachablePairsTest, ACommitInWhichNeitherOfTheTwoOwnedAPartShowsNothing) {
  for (int i = 0; i < 2; ++i) fail({{1, 2}}, {}, {3});
  book.on_commit(peers({1, 2, 3}), peers({3}), peers({1, 2, 3}));
  EXPECT_EQ(book.apart(now).size(), 1u);
  now += kPeerRest.first;
  EXPECT_TRUE(book.apart(now).empty()) << "a trial";
  fail({{1, 2}}, {}, {3});
  EXPECT_EQ(apart, 1u) << "one blame is enough";
  now += 2 * kPeerRest.first - 1s;
  EXPECT_EQ(book.apart(now).size(), 1u);
  now += 1s;
  book.on_commit(peers({1, 2, 3}), peers({1, 3}), peers({1, 2, 3}));
  fail({{1, 2}}, {}, {3});
  EXPECT_EQ(apart, 0u) << "as if it were the first time";
}

// A member that meets nobody, and a third that then meets nobody of a pair that is apart already.
TEST_F(UnreachablePairsTest, WhereNobodyMeetsAllTheMostBlamedOneIsLeftOut) {
  for (int i = 0; i < 2; ++i) fail({{1, 2}, {2, 1}, {3, 1}, {4, 1}});
  EXPECT_TRUE(rests(1));
  EXPECT_EQ(apart, 0u);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(fail({{5, 6}, {6, 5}}, {}, {7}).empty());
  for (int i = 0; i < 2; ++i) fail({{7, 6}}, {}, {5});
  EXPECT_TRUE(rests(6)) << "5 and 7 meet";
  EXPECT_FALSE(rests(5) || rests(7));
}

TEST_F(UnreachablePairsTest, WhoBlamesOneAfterTheOtherGoesAndNotThey) {
  for (const std::uint64_t other : {2u, 3u, 4u})
    for (int i = 0; i < 2; ++i) fail({{1, other}}, {{1, 100}}, {2, 3, 4});
  EXPECT_TRUE(rests(1));
  EXPECT_FALSE(rests(2) || rests(3) || rests(4));
}

TEST_F(UnreachablePairsTest, ARoundOfLargePartsNeedsMoreThanOneThatMeetsAll) {
  for (int i = 0; i < 2; ++i) fail({{1, 2}}, {}, {3}, 2);
  EXPECT_TRUE(rests(2));
  for (int i = 0; i < 2; ++i) fail({{5, 6}}, {}, {7, 8}, 2);
  EXPECT_FALSE(rests(5) || rests(6));
}

TEST_F(UnreachablePairsTest, WhoRestsComesBackWithAMemberThatMeetsAll) {
  for (int i = 0; i < 2; ++i) fail({{1, 2}, {2, 1}}, {{2, 20}});
  ASSERT_TRUE(rests(1));
  EXPECT_TRUE(book.bring_back(peers({1, 2}), peers({1, 2}), 1, now).empty());
  EXPECT_TRUE(book.bring_back(peers({1}), peers({1, 2}), 1, now).empty()) << "the other is away";
  EXPECT_TRUE(book.bring_back(peers({1, 2}), peers({1, 2, 3}), 1, now).empty()) << "the third is away";
  EXPECT_TRUE(book.bring_back(peers({2, 3}), peers({2, 3}), 2, now).empty()) << "its parts are too large";
  EXPECT_EQ(book.bring_back(peers({2, 3}), peers({2, 3}), 1, now), std::vector<PeerId>{peer_of(1)});
  EXPECT_FALSE(rests(1) || doubted(1));
  EXPECT_EQ(book.apart(now).size(), 1u);
  EXPECT_EQ(fail({{1, 2}, {2, 1}}, {{2, 20}}), std::vector<PeerId>{peer_of(1)}) << "the third is gone";
}

TEST_F(UnreachablePairsTest, WhoSendsWhatCannotBeUsedIsLeftOutWhoeverMeetsAll) {
  const std::vector<UnreachablePairs::Blame> blames{{peer_of(1), peer_of(2), true}};
  const auto none = [](const PeerId&) { return 0u; };
  for (int i = 0; i < 2; ++i) book.on_attempt_failed(blames, peers({1, 2, 3, 4}), 1, none, now);
  EXPECT_TRUE(rests(2));
  EXPECT_TRUE(book.bring_back(peers({1, 3, 4}), peers({1, 3, 4}), 1, now).empty());
  EXPECT_TRUE(book.apart(now).empty());
}

TEST_F(UnreachablePairsTest, RestsDoubleAndATrialThatFailsOnceLeavesTheSameOneOut) {
  for (int i = 0; i < 2; ++i) fail({{1, 2}, {2, 1}}, {{1, 10}, {2, 20}});
  ASSERT_TRUE(rests(1));
  Duration rest = kPeerRest.first;
  for (int trial = 0; trial < 8; ++trial) {
    now += rest - 1s;
    EXPECT_TRUE(rests(1));
    now += 1s;
    EXPECT_FALSE(rests(1));
    EXPECT_TRUE(doubted(1)) << "on trial";
    EXPECT_EQ(fail({{1, 2}, {2, 1}}, {{1, 20}, {2, 10}}), std::vector<PeerId>{peer_of(1)});
    rest = std::min<Duration>(2 * rest, kPeerRest.most);
  }
  EXPECT_EQ(rest, kPeerRest.most);
}

TEST_F(UnreachablePairsTest, IsRememberedOverCommitsOfTheOthersAndForgottenAfterATrial) {
  for (int i = 0; i < 2; ++i) fail({{1, 2}, {2, 1}}, {{2, 20}});
  commit({2, 3}, {1, 2, 3});
  EXPECT_TRUE(rests(1));
  now += kPeerRest.first;
  commit({1, 3}, {1, 2, 3});
  EXPECT_TRUE(doubted(1)) << "the other one was not there";
  commit({1, 2, 3}, {1, 2, 3});
  EXPECT_FALSE(doubted(1));
  EXPECT_TRUE(fail({{1, 2}, {2, 1}}).empty()) << "as if it were the first time";
}

TEST_F(UnreachablePairsTest, IsForgottenWhenOneOfThemIsGone) {
  for (int i = 0; i < 2; ++i) fail({{1, 2}, {2, 1}}, {{2, 20}});
  commit({1, 3}, {1, 3});
  EXPECT_FALSE(doubted(1));
  for (int i = 0; i < 2; ++i) fail({{1, 2}, {2, 1}}, {{2, 20}});
  book.on_left(peer_of(2));
  EXPECT_FALSE(doubted(1));
}

TEST_F(UnreachablePairsTest, WhoWasLeftOutServesWhileTheOtherIsGoneAndOneBlameLeavesItOutAgain) {
  for (int i = 0; i < 2; ++i) fail({{1, 2}, {2, 1}}, {{2, 20}});
  ASSERT_TRUE(rests(1));
  book.on_gone(peer_of(1));
  EXPECT_TRUE(rests(1)) << "its next session has the same path";
  book.on_gone(peer_of(2));
  EXPECT_FALSE(rests(1) || doubted(1));
  EXPECT_EQ(fail({{1, 2}, {2, 1}}, {{2, 20}}), std::vector<PeerId>{peer_of(1)});
}

TEST_F(UnreachablePairsTest, WhoSendsWhatCannotBeUsedIsNamedForThat) {
  const std::vector<UnreachablePairs::Blame> blames{{peer_of(1), peer_of(2), true}};
  for (int i = 0; i < 2; ++i)
    book.on_attempt_failed(
        blames, peers({1, 2}), 1, [](const PeerId&) { return 0u; }, now);
  EXPECT_TRUE(rests(2));
  EXPECT_TRUE(book.sends_malformed(peer_of(2)));
  EXPECT_TRUE(book.why(peer_of(2), now)->malformed);
  EXPECT_FALSE(book.sends_malformed(peer_of(1)));
}

TEST_F(UnreachablePairsTest, TheLastRoundTriesWhoRests) {
  for (int i = 0; i < 2; ++i) fail({{1, 2}, {2, 1}}, {{2, 20}});
  try_now({});
  EXPECT_FALSE(rests(1));
  EXPECT_EQ(fail({{1, 2}}), std::vector<PeerId>{peer_of(1)});
}

TEST_F(UnreachablePairsTest, InTheLastRoundsWhoHasBroughtAllRestsForTheOther) {
  for (int i = 0; i < 2; ++i) fail({{1, 2}, {2, 1}}, {{2, 20}});
  ASSERT_TRUE(rests(1));
  try_now({2});
  EXPECT_FALSE(rests(1));
  EXPECT_TRUE(rests(2));
  try_now({1, 2});
  EXPECT_TRUE(rests(2)) << "it has nothing for a trial";
}

TEST_F(UnreachablePairsTest, WhoMeetsNoneOfSeveralOrSendsWhatNobodyCanUseIsTriedAsItIs) {
  for (int i = 0; i < 2; ++i) fail({{1, 2}, {1, 3}, {2, 1}, {3, 1}});
  ASSERT_TRUE(rests(1));
  try_now({2, 3});
  EXPECT_FALSE(rests(1) || rests(2) || rests(3));
  fail({{1, 2}, {2, 1}});
  ASSERT_TRUE(rests(1));
  try_now({2, 3});
  EXPECT_FALSE(rests(1) || rests(3)) << "nobody blamed that path in the newest attempt";
  EXPECT_TRUE(rests(2));
  const std::vector<UnreachablePairs::Blame> malformed{{peer_of(4), peer_of(5), true}};
  for (int i = 0; i < 2; ++i)
    book.on_attempt_failed(
        malformed, peers({4, 5}), 1, [](const PeerId&) { return 0u; }, now);
  ASSERT_TRUE(rests(5));
  try_now({4});
  EXPECT_FALSE(rests(4) || rests(5));
}

TEST_F(UnreachablePairsTest, KeepsABoundedNumber) {
  for (int i = 0; i < 2; ++i) {
    Blames many;
    for (std::uint64_t n = 1; n <= 250; n += 2)
      for (std::uint64_t other = 2; other <= 8; other += 2) many.push_back({n, other});
    fail(many);
  }
  fail({});
  EXPECT_TRUE(rests(2) || rests(4) || rests(6) || rests(8)) << "one of those that all others are apart from";
}

}  // namespace
}  // namespace shoal
