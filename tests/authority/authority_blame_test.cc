// Which member is to blame for an attempt that came to nothing: silence, parts that cannot be used, entries that nobody
// made, commits that no log takes, members too few for their bytes.
#include "common/log.h"
#include "sim/sim_host.h"
#include "tests/authority/authority_rig.h"
#include "transport/limits.h"

namespace shoal {
namespace {

using test::AuthorityTest;
using test::session_of;

class AuthorityBlameTest : public AuthorityTest {
 protected:
  void SetUp() override { set_log_level(LogLevel::kError); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }

  // Serve, and have enough settled for a round.
  void serve(std::uint64_t n) {
    for (std::uint64_t i = 1; i <= n; ++i) join_and_serve(i);
    beat(1, 0, 100 * n);
  }
  // Until the next attempt, which begins by itself.
  void retry(std::uint64_t n) {
    for (std::uint64_t i = 1; i <= n; ++i) beat(i, 0, 100);
    loop.run_for(300ms);
  }
  std::vector<Session> invited() const { return sent_to<RoundOpen>(1).back().members; }
  std::uint64_t round() const { return sent_to<RoundOpen>(1).back().round.value; }
  void say_waiting(std::uint64_t n, std::uint64_t for_whom) {
    fail_round(n, round(), session_of(for_whom), "", ReportKind::kWaiting);
  }
  void say_malformed(std::uint64_t n, std::uint64_t sender) {
    RoundReport report;
    report.round = RoundId(round());
    report.kind = ReportKind::kFailed;
    report.malformed = session_of(sender);
    report.reason = "the part cannot be used";
    authority->on_message(remote(n), report);
  }
  RoundOwners owners() const { return sent_to<RoundOpen>(1).back().owners; }
  // Two attempts of three members in which 1 and 2 miss each other's pieces, and 3 their sums.
  void part_one_from_two(bool third_says_sum = true) {
    for (std::uint64_t attempt = 1; attempt <= 2; ++attempt) {
      ASSERT_EQ(round(), attempt);
      EXPECT_EQ(owners(), (RoundOwners{0, 1, 2}));
      for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, attempt, {n});
      RoundReport third;
      third.round = RoundId(attempt);
      third.kind = ReportKind::kFailed;
      third.silent = session_of(1);
      third.sum = third_says_sum;
      authority->on_message(remote(3), third);
      fail_round(1, attempt, session_of(2), "a part did not come within the budget");
      fail_round(2, attempt, session_of(1), "a part did not come within the budget");
      settle();
      ASSERT_EQ(abandons.size(), attempt);
      loop.run_for(300ms);
      retry(3);
    }
    ASSERT_EQ(sent_to<RoundOpen>(3).back().round, RoundId(3));
  }
  // Two members, and two attempts in which the first one says that nothing came of the second.
  void leave_out_the_second_of_two() {
    boot();
    serve(2);
    for (std::uint64_t attempt = 1; attempt <= 2; ++attempt) {
      ASSERT_EQ(round(), attempt);
      for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, attempt, {n});
      fail_round(1, attempt, session_of(2), "a part did not come within the budget");
      settle();
      retry(2);
    }
    ASSERT_FALSE(listed_serving(2));
  }
  bool listed_serving(std::uint64_t n) const {
    for (const Member& member : authority->members().stages[0].members)
      if (member.session == session_of(n)) return member.serving;
    return false;
  }
  static std::vector<std::uint64_t> first_serials(std::uint64_t count) {
    std::vector<std::uint64_t> serials(count);
    for (std::uint64_t i = 0; i < count; ++i) serials[i] = i;
    return serials;
  }
};

TEST_F(AuthorityBlameTest, WhoContributedMeanwhileDidNotFailTwiceInARow) {
  boot();
  serve(3);
  for (std::uint64_t attempt = 1; attempt <= 3; ++attempt) {
    ASSERT_EQ(round(), attempt);
    if (attempt == 2)
      for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, 2, {n});
    for (std::uint64_t n = attempt == 2 ? 1 : 3; n <= 3; ++n)
      fail_round(n, attempt, std::nullopt, "its numbers are not finite");
    settle();
    ASSERT_EQ(abandons.size(), attempt);
    loop.run_for(300ms);
    retry(3);
  }
  ASSERT_EQ(round(), 4u);
  EXPECT_EQ(invited().size(), 3u);
}

// It was named before it could bring anything, and brought it then.
TEST_F(AuthorityBlameTest, WhoIsNamedSilentAndContributesThenIsNotLeftOut) {
  boot();
  serve(3);
  for (std::uint64_t attempt = 1; attempt <= 2; ++attempt) {
    ASSERT_EQ(round(), attempt);
    contribute(1, attempt, {1});
    fail_round(1, attempt, session_of(2), "a part did not come within the budget");
    for (const std::uint64_t n : {2, 3}) contribute(n, attempt, {n});
    for (const std::uint64_t n : {2, 3}) fail_round(n, attempt, std::nullopt, "its numbers are not finite");
    settle();
    ASSERT_EQ(abandons.size(), attempt);
    loop.run_for(300ms);
    retry(3);
  }
  ASSERT_EQ(round(), 3u);
  EXPECT_EQ(invited().size(), 3u);
}

// With large payloads the members wait longer for the whole of a round than the authority for the contributions.
TEST_F(AuthorityBlameTest, WhoBeatsAndBringsNothingIsLeftOutThoughNobodyNamesIt) {
  options.payload_bytes = {400'000'000};
  boot();
  serve(3);
  for (std::uint64_t attempt = 1; attempt <= 2; ++attempt) {
    ASSERT_EQ(round(), attempt);
    EXPECT_EQ(invited().size(), 3u);
    for (const std::uint64_t n : {1, 3}) contribute(n, attempt, {n});
    keep_alive(3, 34s);
    ASSERT_EQ(abandons.size(), attempt);
    retry(3);
  }
  EXPECT_EQ(invited(), (std::vector<Session>{session_of(1), session_of(3)}));
}

// In a large stage somebody is always dead and not fenced yet. A round with it would wait until it is.
TEST_F(AuthorityBlameTest, ARoundBeginsWithoutWhomItsOpeningWouldNotReach) {
  boot_with(5);
  authority->on_link_down(remote(4));
  for (int i = 0; i < 3; ++i) {  // 5 is silent, 4's link is down
    loop.run_for(900ms);
    for (std::uint64_t n = 1; n <= 3; ++n) beat(n);
  }
  beat(1, 0, 500);
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 1u);
  EXPECT_EQ(invited(), (std::vector<Session>{session_of(1), session_of(2), session_of(3)}));
}

TEST_F(AuthorityBlameTest, ALinkThatComesBackWithinASecondKeepsItsMemberInTheRound) {
  boot_with(3);
  authority->on_link_down(remote(3));
  loop.run_for(500ms);
  beat(1, 0, 300);
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 1u);
  EXPECT_EQ(invited().size(), 3u);
}

TEST_F(AuthorityBlameTest, HalfOfAStageWaitsForTheOtherHalf) {
  boot_with(2);
  loop.run_for(3s);
  beat(1, 0, 200);
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 1u);
  EXPECT_EQ(invited().size(), 2u) << "who is alone is no majority";
}

// The beats of a sleep of ours are read one after another: who comes last was not silent.
TEST_F(AuthorityBlameTest, NobodyIsAwayBecauseWeSlept) {
  for (const bool tick_first : {true, false}) {
    SimHost host(loop, "launch");
    process = &host.loop();
    boot_with(5);
    host.freeze();
    loop.run_for(3s);
    host.resume();
    if (tick_first) settle();
    for (std::uint64_t n = 1; n <= 3; ++n) authority->on_message(remote(n), beat_of(0, 170));
    settle();
    ASSERT_EQ(sent_to<RoundOpen>(1).size(), 1u);
    EXPECT_EQ(invited().size(), 5u) << tick_first;
    stop();
    process = &loop;
    disk = SimDisk();
    sent.clear();
    newest_epoch = Epoch();
  }
}

// The member that got it cannot pass its sum on, so the others would wait for that one.
TEST_F(AuthorityBlameTest, AMalformedPartIsItsSendersFaultAndEndsTheAttempt) {
  boot();
  serve(3);
  for (std::uint64_t attempt = 1; attempt <= 2; ++attempt) {
    ASSERT_EQ(round(), attempt);
    EXPECT_EQ(invited().size(), 3u);
    for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, attempt, {n});
    say_malformed(1, 2);
    settle();
    ASSERT_EQ(abandons.size(), attempt) << "at once";
    fail_round(3, attempt, session_of(1), "a part did not come within the budget");
    retry(3);
  }
  EXPECT_EQ(invited(), (std::vector<Session>{session_of(1), session_of(3)}));
  EXPECT_TRUE(listed_serving(1));
  EXPECT_FALSE(listed_serving(2));
  EXPECT_EQ(told(EventKind::kMember).back().about, session_of(2));
  EXPECT_EQ(told(EventKind::kMember).back().cause, "it sends parts of a round that another member cannot use");
}

TEST_F(AuthorityBlameTest, AnEntryThatTheTrainerNeverCommittedEndsItsReportersSessionAndNobodyElses) {
  invented = {999};
  boot();
  serve(3);
  contribute(1, 1, {1});
  contribute(2, 1, {2, 999});
  settle();
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(2));
  EXPECT_NE(over[0].second.find("entry 999"), std::string::npos) << over[0].second;
  EXPECT_TRUE(fenced.contains(session_of(2)));
  ASSERT_EQ(round(), 2u) << "the others go on at once";
  EXPECT_EQ(invited(), (std::vector<Session>{session_of(1), session_of(3)}));
  for (const std::uint64_t n : {1, 3}) contribute(n, 2, {n});
  for (const std::uint64_t n : {1, 3}) agree(n, 2, 7, 4, 40);
  settle();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].secured.size(), 2u);
}

// It says after its report that it holds the entry no more: that is lost by name then, and no round may contain it.
TEST_F(AuthorityBlameTest, WhoBringsAnEntryThatIsLostBeforeTheRoundIsDecidedIsFencedAndTheRoundAbandoned) {
  boot_with(3);
  contribute_all(3);
  invented = {2};
  for (std::uint64_t n = 1; n <= 3; ++n) agree(n, 1, 7, 6, 60);
  settle();
  EXPECT_TRUE(commits.empty());
  ASSERT_EQ(abandons.size(), 1u);
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(2));
  EXPECT_NE(over[0].second.find("it brought to a round entry 2"), std::string::npos) << over[0].second;
}

TEST_F(AuthorityBlameTest, ACommitThatNoLogTakesEndsItsRoundAndTheNextOneIsCommitted) {
  boot();
  serve(2);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, first_serials(limits::kSerialsMax / 2 + 1));
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 1, 7, 3, 30);
  settle();
  EXPECT_TRUE(commits.empty());
  EXPECT_EQ(log_error, "");
  ASSERT_EQ(abandons.size(), 1u);
  EXPECT_NE(abandons[0].reason.find("its commit cannot be logged"), std::string::npos) << abandons[0].reason;
  retry(2);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 2, {n});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 2, 7, 3, 30);
  settle();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].version, Version(1));
}

// Between two words of one member bytes may have moved at the other.
TEST_F(AuthorityBlameTest, AStallIsOneThatEverybodySaysTwice) {
  boot();
  serve(2);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, {n});
  say_waiting(1, 2);
  loop.run_for(500ms);
  say_waiting(2, 1);
  EXPECT_TRUE(abandons.empty()) << "the first word of everybody";
  loop.run_for(500ms);
  say_waiting(1, 2);
  EXPECT_TRUE(abandons.empty()) << "one said it again";
  loop.run_for(3s);
  say_waiting(1, 2);
  EXPECT_TRUE(abandons.empty()) << "the other one has bytes again";
  loop.run_for(500ms);
  say_waiting(2, 1);
  EXPECT_TRUE(abandons.empty()) << "it begins anew";
  loop.run_for(500ms);
  say_waiting(1, 2);
  say_waiting(2, 1);
  settle();
  EXPECT_EQ(abandons.size(), 1u);
}

TEST_F(AuthorityBlameTest, AWordOfWaitingForNobodyIsNoStall) {
  boot();
  serve(2);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, {n});
  for (int said = 0; said < 4; ++said) {
    for (std::uint64_t n = 1; n <= 2; ++n) fail_round(n, 1, std::nullopt, "", ReportKind::kWaiting);
    loop.run_for(500ms);
  }
  EXPECT_TRUE(abandons.empty());
}

TEST_F(AuthorityBlameTest, OfThreeTwoThatDoNotMeetOwnNothingAndNobodyIsLeftOut) {
  boot();
  serve(3);
  part_one_from_two();
  EXPECT_EQ(invited().size(), 3u);
  EXPECT_EQ(owners(), RoundOwners{2});
  for (std::uint64_t n = 1; n <= 3; ++n) EXPECT_TRUE(listed_serving(n)) << n;
  for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, 3, {n});
  for (std::uint64_t n = 1; n <= 3; ++n) agree(n, 3, 7, 6, 60);
  settle();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].secured.size(), 3u);
  for (std::uint64_t n = 1; n <= 3; ++n) beat(n, 1, 100);
  EXPECT_EQ(round(), 4u);
  EXPECT_EQ(owners(), RoundOwners{2}) << "that commit shows nothing of the two";
  for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, 4, {n + 10});
  for (std::uint64_t n = 1; n <= 3; ++n) agree(n, 4, 8, 6, 60);
  keep_alive(3, 31s, 2);
  for (std::uint64_t n = 1; n <= 3; ++n) beat(n, 2, 100);
  EXPECT_EQ(owners(), (RoundOwners{0, 1, 2})) << "a trial";
}

// It waits for one that waits for another: only what a member says of a piece speaks against the way to it.
TEST_F(AuthorityBlameTest, WhoMissesAPieceIsBelievedAgainstBothOfAPair) {
  boot();
  serve(3);
  part_one_from_two(false);
  EXPECT_EQ(sent_to<RoundOpen>(3).back().members, (std::vector<Session>{session_of(2), session_of(3)}));
  EXPECT_FALSE(listed_serving(1));
}

TEST_F(AuthorityBlameTest, WhoWasLeftOutServesAgainWhenAThirdMeetsBoth) {
  leave_out_the_second_of_two();
  contribute(1, round(), {1});
  agree(1, round(), 7, 1, 10);
  settle();
  ASSERT_EQ(commits.size(), 1u);
  join(3);
  beat(3, 1);
  for (std::uint64_t n = 1; n <= 3; ++n) beat(n, 1, 100);
  EXPECT_TRUE(listed_serving(2));
  for (std::uint64_t n = 1; n <= 3; ++n) beat(n, 1, 100);
  EXPECT_EQ(invited().size(), 3u);
  EXPECT_EQ(owners(), RoundOwners{2});
}

TEST_F(AuthorityBlameTest, WhoWasLeftOutServesAgainWhenTheOtherOfThePairIsGone) {
  leave_out_the_second_of_two();
  ASSERT_TRUE(listed_serving(1));
  for (int second = 0; second < 12; ++second) {
    beat(2, 0, 100);
    loop.run_for(1s);
  }
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(1));
  EXPECT_TRUE(listed_serving(2));
  EXPECT_EQ(sent_to<RoundOpen>(2).back().members, std::vector<Session>{session_of(2)});
}

TEST_F(AuthorityBlameTest, AStageOfTooFewForItsPartsWaitsForAnotherMember) {
  options.payload_bytes = {3 * limits::kTransferBytesMax};
  boot();
  serve(2);
  keep_alive(2, 3s);
  EXPECT_TRUE(sent_to<RoundOpen>(1).empty()) << "1.5 GiB a part";
  join_and_serve(3);
  for (std::uint64_t n = 1; n <= 3; ++n) beat(n, 0, 100);
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 1u);
  EXPECT_EQ(invited().size(), 3u);
}

TEST_F(AuthorityBlameTest, TheEndOfARunDoesNotWaitForARoundOfTooFew) {
  options.payload_bytes = {3 * limits::kTransferBytesMax};
  boot();
  serve(2);
  bool done = false;
  authority->finish([&] { done = true; });
  loop.run_for(1s);
  EXPECT_TRUE(done);
  EXPECT_TRUE(sent_to<RoundOpen>(1).empty());
}

}  // namespace
}  // namespace shoal
