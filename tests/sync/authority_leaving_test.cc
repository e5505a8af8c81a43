// Who leaves, and the last rounds of a run.
#include "tests/sync/authority_rig.h"

namespace shoal {
namespace {

using test::AuthorityTest;

// ---- leaving and the end ----
TEST_F(AuthorityTest, ALeaverGetsARoundAtOnceAndGoodbyeBehindItsCommit) {
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join_and_serve(n);
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
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join_and_serve(n);
  beat(1, 0, 300);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, {n});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 1, 7, 3, 30);
  settle();
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
