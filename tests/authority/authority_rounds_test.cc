#include "tests/authority/authority_rig.h"

namespace shoal {
namespace {

using test::AuthorityTest;
using test::digest_number;
using test::session_of;
using test::step_number;

// ---- rounds ----
TEST_F(AuthorityTest, ARoundOfAllMembersIsCommittedAtOnceAndNamesTheirEntries) {
  boot_with(3);
  beat(1, 0, 160);
  beat(2, 0, 139);
  EXPECT_TRUE(sent_to<RoundOpen>(1).empty()) << "100 for each of the three";
  beat(3, 0, 1);
  ASSERT_EQ(sent_to<RoundOpen>(3).size(), 1u);
  for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, 1, {n, n + 10});
  for (std::uint64_t n = 1; n <= 3; ++n) agree(n, 1, 7, 6, 60);
  settle();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].version, Version(1));
  EXPECT_EQ(commits[0].tag, 60u);
  ASSERT_EQ(commits[0].secured.size(), 3u);
  for (const Secured& secured : commits[0].secured) {
    const std::uint64_t n = secured.session.peer_tag;
    EXPECT_EQ(secured.serials, (std::vector<std::uint64_t>{n, n + 10}));
    EXPECT_EQ(sent_to<RoundCommit>(n).size(), 1u);
  }
  keep_alive(3, 2s, 1);
  EXPECT_EQ(authority->members().stages[0].version, Version(1));
  EXPECT_EQ(authority->members().stages[0].digest, digest_number(7));
  EXPECT_EQ(sent_to<RoundOpen>(1).size(), 1u) << "what was settled before the commit opens no second round";
}

TEST_F(AuthorityTest, AQuorumCommitsAfterTheGraceTimeAndNamesTheLateMemberToo) {
  boot_with(3);
  contribute_all(3);
  agree(1, 1, 7, 6, 60);
  agree(3, 1, 7, 6, 60);
  loop.run_for(options.round_grace - 100ms);
  EXPECT_TRUE(commits.empty());
  loop.run_for(200ms);
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].secured.size(), 3u) << "the sum holds its part";
  agree(2, 1, 7, 6, 60);
  settle();
  EXPECT_EQ(sent_to<RoundCommit>(2).size(), 2u) << "a late report is answered with the commit";
  EXPECT_EQ(commits.size(), 1u);
}

TEST_F(AuthorityTest, NoCommitWithoutEveryContribution) {
  boot_with(3);
  beat(1, 0, 300);
  contribute(1, 1, {1});
  contribute(2, 1, {2});
  for (std::uint64_t n = 1; n <= 3; ++n) agree(n, 1, 7, 6, 60);
  keep_alive(3, 20s);
  EXPECT_TRUE(commits.empty()) << "the entries of member 3 could not be named";
  keep_alive(3, 14s);
  EXPECT_TRUE(commits.empty());
  ASSERT_GE(abandons.size(), 1u);
}

// Its part weighs nothing, so that the sums add up without it.
TEST_F(AuthorityTest, NoCommitWithoutTheContributionOfAMemberThatBroughtNothing) {
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_serve(n);
  beat(1, 0, 300);
  contribute(1, 1, {1});
  contribute(2, 1, {2});
  for (std::uint64_t n = 1; n <= 3; ++n) agree(n, 1, 7, 3, 30);
  settle();
  EXPECT_TRUE(commits.empty()) << "it may be on its way and name entries";
  RoundReport nothing;
  nothing.round = RoundId(1);
  authority->on_message(remote(3), nothing);
  settle();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].secured.size(), 3u);
}

TEST_F(AuthorityTest, HalfOfTheMembersIsNoQuorum) {
  boot_with(2);
  contribute_all(2);
  agree(1, 1, 7, 3, 30);
  keep_alive(2, 20s);
  EXPECT_TRUE(commits.empty());
}

TEST_F(AuthorityTest, SplitVotesAbandonTheRoundAndTheNextOneIsTried) {
  boot_with(2);
  contribute_all(2);
  agree(1, 1, 7, 3, 30);
  agree(2, 1, 8, 3, 30);
  settle();
  ASSERT_EQ(abandons.size(), 1u);
  EXPECT_EQ(sent_to<RoundAbandon>(1).size(), 1u);
  loop.run_for(200ms);
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 2u);
  EXPECT_EQ(sent_to<RoundOpen>(1)[1].round, RoundId(2));
  EXPECT_EQ(sent_to<RoundOpen>(1)[1].base, Version(0));
}

TEST_F(AuthorityTest, TheOddDigestOfThreeIsOutvoted) {
  boot_with(3);
  contribute_all(3);
  agree(1, 1, 8, 6, 60);
  agree(2, 1, 7, 6, 60);
  agree(3, 1, 7, 6, 60);
  settle();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].digest, digest_number(7));
}

TEST_F(AuthorityTest, ASumThatIsNotThatOfTheContributionsIsNotCommitted) {
  boot_with(2);
  contribute_all(2);
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 1, 7, 3, 31);
  settle();
  EXPECT_TRUE(commits.empty());
  EXPECT_EQ(abandons.size(), 1u);
}

TEST_F(AuthorityTest, AMemberThatIsFencedInARoundIsLeftOutOfTheNextAttempt) {
  boot_with(2);
  beat(1, 0, 300);
  contribute(1, 1, {1});
  for (int second = 0; second < 11; ++second) {
    beat(1, 0, 300);
    loop.run_for(1s);
  }
  ASSERT_EQ(abandons.size(), 1u);
  ASSERT_EQ(over.size(), 1u);
  ASSERT_EQ(sent_to<RoundOpen>(1).back().members, std::vector<Session>{session_of(1)})
      << "alone, now that the list says so";
  const std::uint64_t round = sent_to<RoundOpen>(1).back().round.value;
  contribute(1, round, {1});
  agree(1, round, 7, 1, 10);
  settle();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].secured.size(), 1u);
}

TEST_F(AuthorityTest, ARoundWithAQuorumIsCommittedBeforeItsMemberIsFenced) {
  boot_with(3);
  loop.run_for(8s);
  beat(1, 0, 300);
  beat(2, 0, 100);
  for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, 1, {n});
  agree(1, 1, 7, 6, 60);
  loop.run_for(1s);
  agree(2, 1, 7, 6, 60);
  loop.run_for(1900ms);
  ASSERT_EQ(over.size(), 1u);
  ASSERT_EQ(commits.size(), 1u) << "decided with the fence, before the grace time was over";
  EXPECT_EQ(commits[0].secured.size(), 3u);
}

// It blames another one, who had no time to bring anything yet.
TEST_F(AuthorityTest, WhoAnswersTwoOpeningsWithAFailureIsLeftOutAndNotWhomItNames) {
  boot_with(3);
  beat(1, 0, 300);
  for (std::uint64_t round = 1; round <= 2; ++round) {
    const auto opened = sent_to<RoundOpen>(1);
    ASSERT_EQ(opened.back().round, RoundId(round));
    EXPECT_EQ(opened.back().members.size(), 3u);
    fail_round(2, round, session_of(1), "a part did not come within the budget");
    settle();
    ASSERT_EQ(abandons.size(), round);
    for (std::uint64_t n = 1; n <= 3; ++n) beat(n, 0, 100);
    loop.run_for(300ms);
  }
  EXPECT_EQ(sent_to<RoundOpen>(1).back().members, (std::vector<Session>{session_of(1), session_of(3)}));
}

TEST_F(AuthorityTest, WhoIsLeftOutBecauseOfAPairServesAgainWhenTheOtherIsGone) {
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join_and_serve(n);
  beat(1, 0, 300);
  for (std::uint64_t attempt = 1; attempt <= 2; ++attempt) {
    ASSERT_EQ(sent_to<RoundOpen>(1).size(), attempt);
    for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, attempt, {n});
    fail_round(1, attempt, session_of(2), "no byte of it came");
    loop.run_for(200ms);
  }
  const auto serves = [&](std::uint64_t n) {
    const auto& list = authority->members().stages[0].members;
    return std::any_of(list.begin(), list.end(),
                       [&](const Member& member) { return member.session == session_of(n) && member.serving; });
  };
  EXPECT_TRUE(serves(1));
  EXPECT_FALSE(serves(2)) << "no round could secure what it counted";
  for (int second = 0; second < 13; ++second) {
    beat(2);
    loop.run_for(980ms);
  }
  ASSERT_TRUE(fenced.contains(session_of(1)));
  EXPECT_TRUE(serves(2)) << "nobody is left whom it could not reach";
}

TEST_F(AuthorityTest, TheTimeCapOpensARoundWithAnythingSettled) {
  options.round_cap = 5s;
  boot();
  join_and_serve(1);
  keep_alive(1, 7s);
  EXPECT_TRUE(sent_to<RoundOpen>(1).empty());
  beat(1, 0, 1);
  EXPECT_EQ(sent_to<RoundOpen>(1).size(), 1u);
}

TEST_F(AuthorityTest, ARepeatedBeatGetsTheOpeningOrTheCommitThatWasLost) {
  boot_with(2);
  beat(1, 0, 300);
  EXPECT_EQ(sent_to<RoundOpen>(2).size(), 1u);
  loop.run_for(2s);
  beat(2);
  EXPECT_EQ(sent_to<RoundOpen>(2).size(), 2u);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, {n});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 1, 7, 3, 30);
  settle();
  EXPECT_EQ(sent_to<RoundCommit>(2).size(), 1u);
  loop.run_for(2s);
  beat(2, 0);
  EXPECT_EQ(sent_to<RoundCommit>(2).size(), 2u);
  beat(2, 1);
  loop.run_for(2s);
  beat(2, 1);
  EXPECT_EQ(sent_to<RoundCommit>(2).size(), 2u);
}

// Found by the swarm: a member that missed the commit that names it, and then hears of a later one only, would bring
// its entries again.
TEST_F(AuthorityTest, ALaterCommitIsPrecededByTheLastOneThatNamesTheMember) {
  boot_with(3);
  contribute_all(3);
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 1, 7, 6, 60);
  loop.run_for(options.round_grace + 100ms);
  ASSERT_EQ(commits.size(), 1u);
  beat(3, 0);  // it did not get it
  for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 1, 100);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 2, {n + 10});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 2, 8, 3, 30);
  settle();
  ASSERT_EQ(commits.size(), 2u);
  const auto check = [&](std::size_t from) {
    const auto told = sent_to<RoundCommit>(3);
    ASSERT_GE(told.size(), from + 2);
    EXPECT_EQ(told[told.size() - 2].round, RoundId(1));
    ASSERT_EQ(told[told.size() - 2].secured.size(), 1u);
    EXPECT_EQ(told[told.size() - 2].secured[0].serials, std::vector<std::uint64_t>{3});
    EXPECT_EQ(told.back().round, RoundId(2));
  };
  check(1);
  reboot();
  beat(3, 0);
  check(0);
}

TEST_F(AuthorityTest, RoundsWaitForAJoinerThatFetchesButNotForEver) {
  boot();
  join_and_serve(1);
  beat(1, 0, 300);
  contribute(1, 1, {1});
  agree(1, 1, 7, 1, 10);
  settle();
  join(2);
  beat(1, 1, 300);
  EXPECT_EQ(sent_to<RoundOpen>(1).size(), 1u);
  loop.run_for(options.join_hold);
  beat(1, 1, 300);
  EXPECT_EQ(sent_to<RoundOpen>(1).size(), 2u);
}

// ---- steps ----
TEST_F(AuthorityTest, AStepIsARoundOfEveryStageAndIsToldBeforeItsOpening) {
  options.rule = RuleId::kAllreduce;
  options.stages = 2;
  boot();
  join(1);
  join(2);
  beat(1, 0, 0, StageId(0));
  beat(2, 0, 0, StageId(1));
  authority->on_step(step_number(1));
  authority->on_step(step_number(1));
  settle();
  for (std::uint64_t n = 1; n <= 2; ++n) {
    ASSERT_EQ(sent_to<RoundOpen>(n).size(), 1u);
    EXPECT_EQ(sent_to<RoundOpen>(n)[0].step, StepId(1));
    EXPECT_EQ(sent_to<RoundOpen>(n)[0].run_targets, 32u);
    ASSERT_EQ(sent_to<Step>(n).size(), 1u);
  }
  RoundReport contributed;
  contributed.round = RoundId(1);
  RoundReport agreed = contributed;
  agreed.kind = ReportKind::kAgreed;
  authority->on_message(remote(1), contributed);
  authority->on_message(remote(1), agreed);
  settle();
  EXPECT_TRUE(authority->step_done(StageId(0), StepId(1)));
  EXPECT_FALSE(authority->step_done(StageId(1), StepId(1)));
  authority->on_step(step_number(2));
  settle();
  EXPECT_EQ(sent_to<RoundOpen>(1).back().step, StepId(2)) << "a stage need not wait for the others";
  EXPECT_EQ(sent_to<RoundOpen>(2).size(), 1u);
}

TEST_F(AuthorityTest, AWarmStartMakesStepsFirstAndRoundsThen) {
  options.warm_steps = 1;
  boot();
  join_and_serve(1);
  beat(1, 0, 500);
  EXPECT_TRUE(sent_to<RoundOpen>(1).empty()) << "no outer round while it warms up";
  authority->on_step(step_number(1));
  settle();
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 1u);
  EXPECT_EQ(sent_to<RoundOpen>(1)[0].rule, static_cast<std::uint8_t>(RuleId::kAllreduce));
  contribute(1, 1, {1});
  agree(1, 1, 7, 1, 10);
  settle();
  beat(1, 1, 300);
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 2u);
  EXPECT_EQ(sent_to<RoundOpen>(1)[1].rule, static_cast<std::uint8_t>(RuleId::kDiloco));
}

// ---- events ----
TEST_F(AuthorityTest, ARoundAndTheEndOfASessionAreOneEventEach) {
  boot();
  join_and_serve(1);
  join_and_serve(2);
  contribute_all(2);
  agree(1, 1, 7, 3, 30);
  fail_round(2, 1, session_of(1), "nothing came");
  settle();
  for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 0, 300);
  loop.run_for(300ms);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 2, {n});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 2, 7, 3, 30);
  settle();
  keep_alive(1, 12s, 1);

  ASSERT_EQ(told(EventKind::kRoundFailed).size(), 1u);
  EXPECT_EQ(told(EventKind::kRoundFailed)[0].about, session_of(2));
  EXPECT_EQ(told(EventKind::kRoundFailed)[0].silent, session_of(1));
  ASSERT_EQ(told(EventKind::kRoundAbandon).size(), 1u);
  EXPECT_EQ(told(EventKind::kRoundAbandon)[0].round, RoundId(1));
  ASSERT_EQ(told(EventKind::kRoundCommit).size(), 1u);
  EXPECT_EQ(told(EventKind::kRoundCommit)[0].round, RoundId(2));
  EXPECT_EQ(told(EventKind::kRoundCommit)[0].tag, 30u);
  ASSERT_EQ(told(EventKind::kSessionOver).size(), 1u);
  EXPECT_EQ(told(EventKind::kSessionOver)[0].about, session_of(2));

  events.clear();
  reboot();  // it may have died between its log and the line
  EXPECT_EQ(told(EventKind::kRoundCommit).size(), 1u);
  ASSERT_EQ(told(EventKind::kSessionOver).size(), 1u);
  EXPECT_EQ(told(EventKind::kSessionOver)[0].stage, StageId(0));
}

TEST_F(AuthorityTest, ABeatLooksAtTheMembersOfItsOwnStage) {
  options.stages = 3;
  const auto stage_of = [&](std::uint64_t n) {
    for (const StageMembers& stage : authority->members().stages)
      for (const Member& member : stage.members)
        if (member.session == remote(n).session) return stage.stage;
    return StageId(99);
  };
  const auto looked_at_in_a_beat = [&] {
    const std::uint64_t before = authority->looked_at();
    authority->on_message(remote(1), beat_of(0, 1, stage_of(1)));
    return authority->looked_at() - before;
  };
  const auto join_and_beat = [&](std::uint64_t n) {
    join(n, JoinRequest{});
    beat(n, 0, 0, stage_of(n));
  };
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_beat(n);
  ASSERT_EQ(members(stage_of(1)), 1u);
  const std::uint64_t of_one = looked_at_in_a_beat();
  EXPECT_GT(of_one, 0u);
  for (std::uint64_t n = 4; n <= 60; ++n) join_and_beat(n);
  ASSERT_EQ(members(stage_of(1)), 20u);
  EXPECT_EQ(looked_at_in_a_beat(), 20 * of_one);
  std::uint64_t mate = 2;
  while (stage_of(mate) != stage_of(1)) ++mate;
  authority->on_message(remote(mate), Goodbye{});
  settle();
  EXPECT_EQ(looked_at_in_a_beat(), 19 * of_one) << "who is over is looked at no more";
}

}  // namespace
}  // namespace shoal
