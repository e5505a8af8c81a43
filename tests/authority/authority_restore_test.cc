// A stage that lost all who held its newest version goes back to one that somebody still has.
#include <array>

#include "tests/authority/authority_rig.h"

namespace shoal {
namespace {

using test::AuthorityTest;
using test::digest_number;
using test::peer_of;
using test::session_of;
using test::step_number;

class AuthorityRestoreTest : public AuthorityTest {
 protected:
  AuthorityRestoreTest() { options.restore_after = 60s; }

  // Members 1 and 2 make version 1 (digest 7) of the entries 1 and 2, and version 2 (digest 8) of 11 and 12.
  void two_versions() {
    boot_with(2);
    commit_first(2);
    commit_next(2, 8, {11, 12});
  }
  // A round of two members, with what each brings.
  void commit_next(std::uint64_t round, std::uint8_t digest, std::array<std::uint64_t, 2> serials) {
    for (std::uint64_t n = 1; n <= 2; ++n) beat(n, round - 1, 300);
    for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, round, {serials.at(n - 1)});
    for (std::uint64_t n = 1; n <= 2; ++n) agree(n, round, digest, 3, 30);
    settle();
    for (std::uint64_t n = 1; n <= 2; ++n) beat(n, round);
    ASSERT_EQ(newest(), Version(round));
  }
  // Another process of the same key, with a session of its own.
  static Remote again(std::uint64_t n) {
    Remote remote = AuthorityTest::remote(n);
    remote.session.incarnation += 1000;
    return remote;
  }
  // It joins with what it has: a version and its digest.
  void come_back(const Remote& who, std::uint64_t version, std::uint8_t digest) {
    JoinRequest request;
    request.held_stage = StageId(0);
    request.held = {{Version(version), digest_number(digest)}};
    authority->on_link_up(who);
    authority->on_message(who, request);
    settle();
    wait_with(who, version, digest);
  }
  void wait_with(const Remote& who, std::uint64_t version, std::uint8_t digest) {
    Beat beat = beat_of();
    beat.serving = false;
    if (version > 0) beat.held = {{Version(version), digest_number(digest)}};
    authority->on_message(who, beat);
    settle();
  }
  // For so long, a beat a second.
  void wait_for(Duration time, const Remote& who, std::uint64_t version, std::uint8_t digest) {
    for (const TimePoint end = loop.now() + time; loop.now() < end; loop.run_for(980ms))
      wait_with(who, version, digest);
  }
  static std::vector<HeldState> states(std::initializer_list<std::pair<std::uint64_t, std::uint8_t>> all) {
    std::vector<HeldState> states;
    for (const auto& [version, digest] : all) states.push_back({Version(version), digest_number(digest)});
    return states;
  }
  Version newest() const { return authority->status()[0].version; }
  Digest digest() const { return authority->members().stages[0].digest; }
};

TEST_F(AuthorityRestoreTest, GoesBackAtOnceWhenAllWhoMayHaveTheNewestAreBackWithoutIt) {
  two_versions();
  come_back(again(1), 1, 7);
  EXPECT_EQ(newest(), Version(2)) << "member 2 may have the newest";
  come_back(again(2), 1, 7);
  wait_for(2s, again(1), 1, 7);
  EXPECT_EQ(newest(), Version(3));
  EXPECT_EQ(digest(), digest_number(7)) << "the content of version 1";
  const auto lines = told(EventKind::kRestored);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].back_to, Version(1));
  EXPECT_EQ(lines[0].version, Version(3));
  EXPECT_EQ(lines[0].tag, 30u);
  const std::vector<Secured> taken{{session_of(1), {11}}, {session_of(2), {12}}};
  ASSERT_EQ(lines[0].secured->size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*lines[0].secured)[i].session, taken[i].session);
    EXPECT_EQ((*lines[0].secured)[i].serials, taken[i].serials);
  }
  ASSERT_EQ(restored.size(), 1u);
  EXPECT_EQ(restored[0].round, RoundId(3)) << "ids of rounds are never reused";
}

TEST_F(AuthorityRestoreTest, WaitsForWhoMayHaveTheNewestAndTakesTheNewestThatIsThere) {
  two_versions();
  come_back(again(1), 1, 7);
  wait_for(50s, again(1), 1, 7);  // member 2 is fenced meanwhile
  EXPECT_EQ(newest(), Version(2));
  EXPECT_EQ(authority->status()[0].back_to, Version(1)) << "and says what it will do";
  come_back(again(2), 2, 8);
  wait_for(1s, again(2), 2, 8);
  EXPECT_EQ(newest(), Version(2)) << "who has the newest brings the stage back, and nothing is lost";
  EXPECT_FALSE(authority->status()[0].back_to);
  EXPECT_TRUE(told(EventKind::kRestored).empty());
}

// The newest on its disk is of another line than the stage's: what an earlier life wrote whose log was lost.
TEST_F(AuthorityRestoreTest, OfAllThatAMemberHasItTakesTheNewestThatIsOnItsLine) {
  two_versions();
  commit_next(3, 9, {21, 22});
  JoinRequest request;
  request.held_stage = StageId(0);
  request.held = states({{3, 77}, {2, 8}, {1, 7}});
  for (const std::uint64_t n : {1, 2}) {
    authority->on_link_up(again(n));
    authority->on_message(again(n), request);
    settle();
  }
  Beat beat = beat_of();
  beat.serving = false;
  for (int i = 0; i < 3; ++i) {
    beat.held = states({{3, 77}, {1, 7}});
    authority->on_message(again(1), beat);
    beat.held = states({{3, 77}, {2, 8}, {1, 7}});
    authority->on_message(again(2), beat);
    settle();
    loop.run_for(980ms);
  }
  ASSERT_EQ(newest(), Version(4));
  EXPECT_EQ(digest(), digest_number(8));
  EXPECT_EQ(told(EventKind::kRestored).at(0).back_to, Version(2));
}

TEST_F(AuthorityRestoreTest, OfTwoVersionsThatAreHeldItTakesTheNewer) {
  two_versions();
  commit_next(3, 9, {21, 22});
  come_back(again(1), 1, 7);
  come_back(again(2), 2, 8);
  wait_for(2s, again(2), 2, 8);
  ASSERT_EQ(newest(), Version(4));
  EXPECT_EQ(digest(), digest_number(8));
  EXPECT_EQ(told(EventKind::kRestored).at(0).back_to, Version(2));
}

// The shares of summary.json are of what the anchors have.
TEST_F(AuthorityRestoreTest, WhatItTakesBackIsInNobodysShareAlsoAfterARestart) {
  two_versions();
  const auto share = [&](std::uint64_t n) {
    return authority->tally().shares.at({session_of(n).peer_tag, StageId(0)});
  };
  ASSERT_EQ(share(1), 2u);
  come_back(again(1), 1, 7);
  come_back(again(2), 1, 7);
  wait_for(2s, again(1), 1, 7);
  ASSERT_EQ(newest(), Version(3));
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(authority->tally().taken_back, 2u);
    for (std::uint64_t n = 1; n <= 2; ++n) EXPECT_EQ(share(n), 1u);
    reboot();
  }
}

TEST_F(AuthorityRestoreTest, TheStepsThatWereDoneStayDone) {
  options.rule = RuleId::kAllreduce;
  boot_with(2);
  for (std::uint64_t step = 1; step <= 2; ++step) {
    authority->on_step(step_number(step));
    settle();
    for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, step, {10 * step + n});
    for (std::uint64_t n = 1; n <= 2; ++n) agree(n, step, static_cast<std::uint8_t>(6 + step), 3, 30);
    settle();
    for (std::uint64_t n = 1; n <= 2; ++n) beat(n, step);
  }
  ASSERT_EQ(newest(), Version(2));
  come_back(again(1), 1, 7);
  come_back(again(2), 1, 7);
  wait_for(2s, again(1), 1, 7);
  ASSERT_EQ(newest(), Version(3));
  for (int life = 0; life < 2; ++life) {
    EXPECT_TRUE(authority->step_done(StageId(0), StepId(2)));
    EXPECT_EQ(authority->members().stages[0].step, StepId(2)) << "the version is another number";
    reboot();
  }
}

TEST_F(AuthorityRestoreTest, AfterTheTimeItGoesBackWithoutThem) {
  two_versions();
  come_back(again(1), 1, 7);
  wait_for(75s, again(1), 1, 7);
  EXPECT_EQ(newest(), Version(3));
  // It serves the version under its new name, and rounds go on from there.
  Beat beat = beat_of(3, 300);
  authority->on_message(again(1), beat);
  settle();
  const auto opens = sent_to<RoundOpen>(1);
  ASSERT_FALSE(opens.empty());
  EXPECT_EQ(opens.back().base, Version(3));
  EXPECT_EQ(opens.back().round, RoundId(4));
}

TEST_F(AuthorityRestoreTest, BelievesNobodyWhomItNeverSawWithTheVersionNorADigestThatNoRoundMade) {
  two_versions();
  come_back(again(1), 1, 9);
  wait_for(75s, again(1), 1, 9);
  EXPECT_EQ(newest(), Version(2)) << "no round made digest 9";
  come_back(AuthorityTest::remote(5), 1, 7);
  for (int i = 0; i < 75; ++i) {
    wait_with(again(1), 1, 9);
    wait_with(AuthorityTest::remote(5), 1, 7);
    loop.run_for(960ms);
  }
  EXPECT_EQ(newest(), Version(2)) << "peer 5 was never there";
}

TEST_F(AuthorityRestoreTest, AStrangerWhoSaysThatItHasTheNewestHoldsNothingUp) {
  two_versions();
  come_back(again(1), 1, 7);
  come_back(AuthorityTest::remote(5), 2, 8);
  for (int i = 0; i < 75; ++i) {
    wait_with(again(1), 1, 7);
    wait_with(AuthorityTest::remote(5), 2, 8);
    loop.run_for(960ms);
  }
  EXPECT_EQ(newest(), Version(3));
}

TEST_F(AuthorityRestoreTest, WhatItWentBackFromIsOnNoLineAnyMore) {
  two_versions();
  come_back(again(1), 1, 7);
  come_back(again(2), 1, 7);
  wait_for(2s, again(1), 1, 7);
  ASSERT_EQ(newest(), Version(3));
  Remote third = AuthorityTest::remote(1);
  third.session.incarnation += 2000;
  Remote fourth = AuthorityTest::remote(2);
  fourth.session.incarnation += 2000;
  come_back(third, 2, 8);
  come_back(fourth, 2, 8);
  wait_for(75s, third, 2, 8);
  EXPECT_EQ(newest(), Version(3)) << "version 2 lies behind";
  wait_for(3s, third, 1, 7);
  EXPECT_EQ(newest(), Version(3)) << "it has the content of the newest, whatever it calls it";
}

TEST_F(AuthorityRestoreTest, ARestartedAuthorityTellsItAgainAndGoesOnFromIt) {
  two_versions();
  come_back(again(1), 1, 7);
  come_back(again(2), 1, 7);
  wait_for(2s, again(1), 1, 7);
  const auto before = told(EventKind::kRestored);
  ASSERT_EQ(before.size(), 1u);
  events.clear();
  restored.clear();
  newest_epoch = Epoch(0);
  reboot();
  const auto after = told(EventKind::kRestored);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].tag, before[0].tag);
  EXPECT_EQ(after[0].digest, before[0].digest);
  EXPECT_EQ(after[0].secured->size(), before[0].secured->size());
  EXPECT_EQ(newest(), Version(3));
  EXPECT_EQ(told(EventKind::kRoundCommit).size(), 2u);
  // A second loss: the one that holds version 1 brings its content back once more, and nothing is taken back for it.
  authority->on_link_up(again(1));
  wait_for(3s, again(1), 1, 7);
  EXPECT_EQ(newest(), Version(3));
}

TEST_F(AuthorityRestoreTest, AJoinerGetsTheStageThatOnlyItCanBringBack) {
  options.stages = 2;
  boot();
  join_and_serve(1);
  join(3);  // the empty one: stage 1
  beat(3, 0, 0, StageId(1));
  join_and_serve(2);
  commit_first(2);
  for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 1, 300);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 2, {10 + n});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 2, 8, 3, 30);
  for (int i = 0; i < 30; ++i) {  // both are fenced
    beat(3, 0, 0, StageId(1));
    loop.run_for(980ms);
  }
  come_back(again(2), 1, 7);
  const auto answers = sent_to<JoinAnswer>(2);
  ASSERT_FALSE(answers.empty());
  EXPECT_EQ(answers.back().stage, StageId(0));
  EXPECT_NE(answers.back().reason.find("holds version 1"), std::string::npos) << answers.back().reason;
}

}  // namespace
}  // namespace shoal
