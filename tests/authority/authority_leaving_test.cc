// Members that leave, and the last rounds of a run.
#include "sync/round_budget.h"
#include "tests/authority/authority_rig.h"

namespace shoal {
namespace {

using test::AuthorityTest;
using test::session_of;

// ---- leaving and the end ----
TEST_F(AuthorityTest, ALeaverGetsARoundAtOnceAndGoodbyeBehindItsCommit) {
  boot_with(2);
  beat(1, 0, 3);
  authority->on_message(remote(1), Leave{true});
  settle();
  EXPECT_FALSE(authority->members().stages[0].members[0].serving) << "no new forwards";
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 1u);
  EXPECT_EQ(sent_to<RoundOpen>(1)[0].members.size(), 2u);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, {n});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 1, 7, 3, 30);
  settle();
  EXPECT_EQ(commits.size(), 1u);
  EXPECT_EQ(sent_to<Goodbye>(1).size(), 1u);
  EXPECT_EQ(members(), 1u);
  ASSERT_EQ(over.size(), 1u);
  authority->on_message(remote(1), Leave{true});
  EXPECT_EQ(sent_to<Goodbye>(1).size(), 2u) << "a lost Goodbye is said again";
  EXPECT_TRUE(sent_to<Fenced>(1).empty());
}

// What it settled since it contributed to the open round is in none.
TEST_F(AuthorityTest, ALeaverThatAsksDuringARoundGoesAfterTheNextOne) {
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join_and_serve(n);
  beat(1, 0, 300);
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 1u);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, {n});
  authority->on_message(remote(1), Leave{true});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 1, 7, 3, 30);
  settle();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_TRUE(sent_to<Goodbye>(1).empty());
  beat(1, 1, 8);
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 2u);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 2, {10 + n});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 2, 8, 3, 30);
  settle();
  EXPECT_EQ(commits.size(), 2u);
  EXPECT_EQ(sent_to<Goodbye>(1).size(), 1u);
}

TEST_F(AuthorityTest, ALeaverWithNothingToSecureGoesAtOnce) {
  boot();
  join_and_serve(1);
  authority->on_message(remote(1), Leave{false});
  settle();
  EXPECT_EQ(sent_to<Goodbye>(1).size(), 1u);
  EXPECT_EQ(members(), 0u);
}

TEST_F(AuthorityTest, OfTwoThatLeaveTogetherTheLastStaysUntilAnotherHoldsTheState) {
  boot_with(2);
  commit_first(2);
  ASSERT_EQ(commits.size(), 1u);
  for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 1, 3);
  for (std::uint64_t n = 1; n <= 2; ++n) authority->on_message(remote(n), Leave{true});
  settle();
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 2, {10 + n});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 2, 8, 3, 30);
  settle();
  ASSERT_EQ(commits.size(), 2u) << "a leaver is in the round that it asked for";
  EXPECT_EQ(sent_to<Goodbye>(1).size() + sent_to<Goodbye>(2).size(), 1u);
  ASSERT_EQ(members(), 1u);
  const std::uint64_t last = sent_to<Goodbye>(1).empty() ? 1 : 2;
  for (int i = 0; i < 3; ++i) {
    authority->on_message(remote(last), Leave{false});
    settle();
  }
  EXPECT_TRUE(sent_to<Goodbye>(last).empty());
  join(3);
  beat(3, 2);
  authority->on_message(remote(last), Leave{false});
  settle();
  EXPECT_EQ(sent_to<Goodbye>(last).size(), 1u);
}

TEST_F(AuthorityTest, FinishMakesALastRoundAndStillTakesIn) {
  boot();
  join_and_serve(1);
  bool done = false;
  authority->finish([&] { done = true; });
  settle();
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 1u);
  EXPECT_TRUE(sent_to<RoundOpen>(1)[0].last);
  EXPECT_FALSE(done);
  join(2);
  ASSERT_EQ(sent_to<JoinAnswer>(2).size(), 1u);
  EXPECT_TRUE(sent_to<JoinAnswer>(2)[0].accepted) << "it may hold what the last round needs";
  contribute(1, 1, {});
  agree(1, 1, 7, 1, 10);
  settle();
  EXPECT_TRUE(done);
  authority->end("all tokens are trained");
  EXPECT_EQ(sent_to<End>(1).size(), 1u);
}

// Two of three went on without the third, and then the run ends.
class ThirdIsBehindTest : public AuthorityTest {
 protected:
  void open_a_last_round_without_it() {
    boot_with(3);
    beat(1, 0, 300);
    for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, 1, {n});
    for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 1, 7, 6, 60);
    loop.run_for(options.round_grace + 1s);
    ASSERT_EQ(commits.size(), 1u);
    for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 1);
    beat(3, 0);
    authority->finish([&] { done = true; });
    settle();
    ASSERT_EQ(sent_to<RoundOpen>(1).size(), 2u);
    EXPECT_EQ(sent_to<RoundOpen>(1)[1].members.size(), 2u) << "the third does not have its base";
  }
  void commit_it() {
    for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 2, {10 + n});
    for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 2, 8, 3, 30);
  }

  bool done = false;
};

TEST_F(ThirdIsBehindTest, AnotherLastRoundTakesInWhoWasBehindInTheFirst) {
  open_a_last_round_without_it();
  commit_it();
  for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 2);
  EXPECT_FALSE(done);
  EXPECT_EQ(sent_to<RoundOpen>(1).size(), 2u) << "nobody has anything new";
  beat(3, 2);
  ASSERT_EQ(sent_to<RoundOpen>(3).size(), 2u);
  EXPECT_TRUE(sent_to<RoundOpen>(3)[1].last);
  EXPECT_EQ(sent_to<RoundOpen>(3)[1].members.size(), 3u);
  for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, 3, {20 + n});
  for (std::uint64_t n = 1; n <= 3; ++n) agree(n, 3, 9, 6, 60);
  settle();
  EXPECT_TRUE(done);
}

TEST_F(ThirdIsBehindTest, TheEndWaitsForWhoIsBehindNoLongerThanItsSessionLives) {
  open_a_last_round_without_it();
  commit_it();
  settle();
  ASSERT_EQ(commits.size(), 2u);
  keep_alive(2, options.membership - 2s, 2);
  EXPECT_FALSE(done);
  keep_alive(2, 4s, 2);
  EXPECT_TRUE(done);
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(3));
}

TEST_F(ThirdIsBehindTest, TheEndWaitsForWhoNeverCatchesUpNoLongerThanItsBound) {
  open_a_last_round_without_it();
  commit_it();
  settle();
  ASSERT_EQ(commits.size(), 2u);
  const TimePoint bound = loop.now() + kRoundBudgetFloor + options.membership;
  while (!done && loop.now() < bound + 5s) {
    for (std::uint64_t n = 1; n <= 3; ++n) beat(n, n == 3 ? 0 : 2);
    loop.run_for(900ms);
  }
  EXPECT_TRUE(done);
  EXPECT_GE(loop.now(), bound - 2s);
  EXPECT_TRUE(over.empty());
}

// Two that cannot exchange the bytes of a round.
TEST_F(AuthorityTest, WhoRestsIsTriedAgainBeforeTheRunEnds) {
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join_and_serve(n);
  bool done = false;
  authority->finish([&] { done = true; });
  std::size_t with_both = 0, alone = 0;
  Version version;
  for (int second = 0; second < 60 && !done; ++second) {
    for (std::uint64_t n = 1; n <= 2; ++n) beat(n, version.value);
    const auto opened = sent_to<RoundOpen>(1);
    if (opened.size() == with_both + alone) {
      loop.run_for(1s);
      continue;
    }
    const RoundOpen& open = opened.back();
    for (const Session& session : open.members) contribute(session == session_of(1) ? 1 : 2, open.round.value, {});
    if (open.members.size() == 1) {
      ++alone;
      agree(1, open.round.value, 7, 1, 10);
      version = Version(open.base.value + 1);
    } else {
      ++with_both;
      for (std::uint64_t n = 1; n <= 2; ++n) fail_round(n, open.round.value, session_of(3 - n), "nothing came");
    }
    loop.run_for(200ms);
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(alone, 1u) << "what it brought is secured, the rest of the pair has not been";
  EXPECT_EQ(with_both, 2u + 8u);
}

class LastRoundsOfPairsTest : public AuthorityTest {
 protected:
  // The last rounds of so many members, of which these pairs cannot meet: an attempt fails in which one of a pair owns
  // a part and the other is there.
  void finish_with(std::uint64_t members, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& pairs) {
    boot_with(members);
    bool done = false;
    authority->finish([&] { done = true; });
    std::set<std::uint64_t> rounds;
    Version version;
    for (int second = 0; second < 60 && !done; ++second) {
      for (std::uint64_t n = 1; n <= members; ++n) beat(n, version.value);
      loop.run_for(1s);
      RoundOpen open;
      for (std::uint64_t n = 1; n <= members; ++n)
        for (const RoundOpen& one : sent_to<RoundOpen>(n))
          if (one.round > open.round) open = one;
      if (open.round.value == 0 || !rounds.insert(open.round.value).second) continue;
      const auto has = [&](std::uint64_t n) {
        return std::ranges::find(open.members, session_of(n)) != open.members.end();
      };
      const auto owns = [&](std::uint64_t n) {
        return std::ranges::any_of(open.owners, [&](std::uint16_t at) { return open.members[at] == session_of(n); });
      };
      std::uint64_t weight = 0;
      for (std::uint64_t n = 1; n <= members; ++n)
        if (has(n)) contribute(n, open.round.value, {10 * open.round.value + n}), weight += n;
      bool fails = false;
      for (const auto& [one, other] : pairs) {
        if (!has(one) || !has(other) || (!owns(one) && !owns(other))) continue;
        fails = true;
        fail_round(one, open.round.value, session_of(other), "nothing came");
      }
      if (fails) {
        ++failed;
        continue;
      }
      for (std::uint64_t n = 1; n <= members; ++n)
        if (has(n)) agree(n, open.round.value, 7, weight, 10 * weight);
      committed.push_back(open.members);
      version = Version(open.base.value + 1);
    }
    EXPECT_TRUE(done);
  }
  std::vector<std::vector<Session>> committed;
  std::size_t failed = 0;
};

TEST_F(LastRoundsOfPairsTest, OfThreeTheThirdAddsUpForTheTwo) {
  finish_with(3, {{1, 3}, {3, 1}});
  EXPECT_EQ(failed, 2u);
  ASSERT_EQ(committed.size(), 1u);
  EXPECT_EQ(committed[0].size(), 3u);
}

// Nobody meets all, so one of them rests.
TEST_F(LastRoundsOfPairsTest, OfTwoPairsWhoRestedBringsItsOwnWithoutTheOther) {
  finish_with(4, {{1, 3}, {2, 4}});
  EXPECT_EQ(failed, 2u) << "as many as it takes to leave one out";
  ASSERT_EQ(committed.size(), 2u);
  for (const auto& members : committed) EXPECT_EQ(members.size(), 3u);
  EXPECT_NE(committed[0], committed[1]) << "what each of the four held is in one";
}

// A round that is committed behind the last ones would name what its caller has named lost meanwhile.
TEST_F(AuthorityTest, OpensNoRoundOnceItHasFinished) {
  boot();
  join_and_serve(1);
  bool done = false;
  authority->finish([&] { done = true; });
  settle();
  contribute(1, 1, {});
  agree(1, 1, 7, 1, 10);
  settle();
  ASSERT_TRUE(done);
  beat(1, 1, 300);
  settle();
  EXPECT_EQ(sent_to<RoundOpen>(1).size(), 1u);
}

TEST_F(AuthorityTest, FinishDoesNotWaitForAStageThatNobodyServes) {
  options.stages = 2;
  boot();
  bool done = false;
  authority->finish([&] { done = true; });
  settle();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace shoal
