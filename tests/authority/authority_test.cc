#include "events/delay.h"
#include "tests/authority/authority_rig.h"
#include "transport/limits.h"

namespace shoal {
namespace {

using test::AuthorityTest;
using test::kLogPath;
using test::peer_of;
using test::session_of;
using test::step_number;

// ---- joining ----
TEST_F(AuthorityTest, AJoinerIsAMemberFirstAndAnsweredThen) {
  boot();
  join(1);
  ASSERT_EQ(sent_to<JoinAnswer>(1).size(), 1u);
  EXPECT_TRUE(sent_to<JoinAnswer>(1)[0].accepted);
  EXPECT_TRUE(sent_to<JoinAnswer>(1)[0].initialise) << "the stage never secured a round";
  ASSERT_EQ(members(), 1u);
  EXPECT_FALSE(authority->members().stages[0].members[0].serving);
  beat(1);
  EXPECT_TRUE(authority->members().stages[0].members[0].serving);
}

TEST_F(AuthorityTest, TheLogSaysWhatAJoinersOwnerCallsIt) {
  boot();
  JoinRequest named;
  named.name = "Zoe's 4090";
  authority->on_message(remote(1), named);
  settle();
  ASSERT_EQ(members(), 1u);
  const auto said =
      std::find_if(events.begin(), events.end(), [](const EventRecord& event) { return event.state == "joined"; });
  ASSERT_NE(said, events.end());
  EXPECT_EQ(said->peer_name, "Zoe's 4090");
}

TEST_F(AuthorityTest, AnOwnersNameThatIsNoneIsRefused) {
  boot();
  JoinRequest named;
  named.name = "\x1b[2J";
  authority->on_message(remote(1), named);
  settle();
  EXPECT_EQ(members(), 0u);
  ASSERT_EQ(sent_to<JoinAnswer>(1).size(), 1u);
  EXPECT_FALSE(sent_to<JoinAnswer>(1)[0].accepted);
  EXPECT_NE(sent_to<JoinAnswer>(1)[0].reason.find("name"), std::string::npos);
}

TEST_F(AuthorityTest, JoinersSpreadOverTheStages) {
  options.stages = 3;
  boot();
  for (std::uint64_t n = 1; n <= 6; ++n) join(n);
  for (std::uint16_t k = 0; k < 3; ++k) EXPECT_EQ(members(StageId(k)), 2u);
}

TEST_F(AuthorityTest, ANewerSessionOfAPeerReplacesItsOlder) {
  boot();
  join_and_serve(1);
  Remote again = remote(1);
  again.session.incarnation = 5;
  authority->on_message(again, JoinRequest{});
  settle();
  ASSERT_EQ(members(), 1u);
  EXPECT_EQ(authority->members().stages[0].members[0].session, again.session);
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(1));
  EXPECT_TRUE(fenced.count(session_of(1)));
}

TEST_F(AuthorityTest, AStageThatSecuredARoundIsNeverInitialisedAgain) {
  boot();
  join_and_serve(1);
  beat(1, 0, 300);
  contribute(1, 1, {4});
  agree(1, 1, 5, 1, 10);
  settle();
  ASSERT_EQ(commits.size(), 1u);
  join(2);
  EXPECT_FALSE(sent_to<JoinAnswer>(2)[0].initialise);
  beat(2, 0);
  EXPECT_FALSE(authority->members().stages[0].members[1].serving) << "it does not hold the newest anchor";
  beat(2, 1);
  EXPECT_TRUE(authority->members().stages[0].members[1].serving);
  reboot();
  join(3);
  EXPECT_FALSE(sent_to<JoinAnswer>(3)[0].initialise);
}

// ---- fencing ----
TEST_F(AuthorityTest, FencesASessionAfterTheMembershipTime) {
  boot();
  join_and_serve(1);
  join_and_serve(2);
  keep_alive(1, 9s);
  EXPECT_TRUE(over.empty());
  keep_alive(1, 3s);
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(2));
  EXPECT_TRUE(fenced.count(session_of(2)));
  EXPECT_EQ(sent_to<Fenced>(2).size(), 1u);
  EXPECT_EQ(members(), 1u);
  beat(2);
  EXPECT_EQ(sent_to<Fenced>(2).size(), 2u) << "it is told again when it wakes up";
  authority->on_message(remote(2), JoinRequest{});
  settle();
  EXPECT_EQ(members(), 1u) << "that session is over for good";
}

// Beats of member 1 for `time`, whose job had run for `job` at the first one.
class JobTest : public AuthorityTest {
 protected:
  void work(Duration job, Duration longest, Duration time) {
    for (Duration at{}; at < time; at += 1s) {
      Beat beat = beat_of();
      if (job > Duration::zero()) beat.job_ms = static_cast<std::uint32_t>((job + at) / 1ms);
      beat.longest_ms = static_cast<std::uint32_t>(longest / 1ms);
      authority->on_message(remote(1), beat);
      loop.run_for(1s);
    }
  }
};

TEST_F(JobTest, AJobOfFourTimesTheLongestOfItsKindIsAHangAndToldWithFigures) {
  boot();
  join_and_serve(1);
  work(1s, 12s, 47s);
  EXPECT_TRUE(over.empty());
  work(48s, 12s, 3s);
  ASSERT_EQ(over.size(), 1u);
  EXPECT_NE(over[0].second.find("the longest finished one of its kind took 12.0 s, and at most 48.0 s"),
            std::string::npos)
      << over[0].second;
}

TEST_F(JobTest, WhereJobsAreShortTheMembershipTimeIsTheBound) {
  boot();
  join_and_serve(1);
  work(1s, 20ms, 9s);
  EXPECT_TRUE(over.empty());
  work(10s, 20ms, 3s);
  EXPECT_EQ(over.size(), 1u);
}

TEST_F(JobTest, TheFirstJobOfAKindHasFiveMinutes) {
  boot();
  join_and_serve(1);
  work(1s, 0s, 299s);
  EXPECT_TRUE(over.empty());
  work(300s, 0s, 3s);
  EXPECT_EQ(over.size(), 1u);
}

TEST_F(JobTest, AClaimThatNobodySawBuysAsMuchAgainOnce) {
  boot();
  join_and_serve(1);
  work(1s, 600s, 79s);
  EXPECT_TRUE(over.empty()) << "four times the membership time, and that again";
  work(80s, 600s, 3s);
  ASSERT_EQ(over.size(), 1u);
  EXPECT_NE(over[0].second.find("and at most 80.0 s"), std::string::npos) << over[0].second;
}

TEST_F(JobTest, WhatAJobWasSeenToTakeIsBelievedAndNoMore) {
  boot();
  join_and_serve(1);
  work(1s, 600s, 60s);
  work(0s, 600s, 1s);
  work(1s, 600s, 239s);  // four times 60 s; the extension is spent
  EXPECT_TRUE(over.empty());
  work(240s, 600s, 10s);
  EXPECT_EQ(over.size(), 1u);
}

TEST_F(JobTest, NoJobUnderWayIsNoHang) {
  boot();
  join_and_serve(1);
  work(0s, 0s, 60s);
  EXPECT_TRUE(over.empty());
}

TEST_F(JobTest, AMemberWhoseBeatsCameLateLatelyHasMorePatience) {
  boot();
  join_and_serve(1);
  loop.run_for(8s);
  beat(1);
  loop.run_for(15s);
  EXPECT_TRUE(over.empty());
  loop.run_for(2s);
  EXPECT_EQ(over.size(), 1u);
}

TEST_F(JobTest, WhileASyncIsOverdueNobodyIsFencedAndItIsSaid) {
  boot();
  join_and_serve(1);
  disk.set_sync_delay(40s);
  authority->on_link_up(remote(2));
  authority->on_message(remote(2), JoinRequest{});  // a decision
  loop.run_for(39s);
  EXPECT_TRUE(over.empty());
  ASSERT_EQ(slow_log.size(), 2u) << "after two seconds, and again";
  EXPECT_GE(slow_log[0], 2s);
  EXPECT_LT(slow_log[0], 3s);
  disk.set_sync_delay(1ms);
  loop.run_for(11s);
  EXPECT_EQ(over.size(), 2u) << "then the time goes on";
}

TEST_F(AuthorityTest, ALostLinkEndsNoSession) {
  boot();
  join_and_serve(1);
  authority->on_link_down(remote(1));
  loop.run_for(5s);
  EXPECT_TRUE(over.empty());
  authority->on_link_up(remote(1));
  beat(1);
  loop.run_for(8s);
  EXPECT_TRUE(over.empty());
}

TEST_F(AuthorityTest, RestartsAllMembershipTimersWhenItWasAway) {
  boot();
  join_and_serve(1);
  stop();
  loop.run_for(60s);
  boot();
  EXPECT_EQ(members(), 1u);
  loop.run_for(9s);
  EXPECT_TRUE(over.empty()) << "the authority was away, not they";
  loop.run_for(2s);
  EXPECT_EQ(over.size(), 1u);
}

// ---- ahead of the log ----
// This process admitted it and told it every version that it can have.
TEST_F(AuthorityTest, AMemberWithAVersionThatNobodyMadeIsEndedAndItsPeerRests) {
  boot_with(2);
  beat(1, ~std::uint64_t{0});
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(1));
  EXPECT_NE(over[0].second.find("it says that it holds version 18446744073709551615, and version 0 is the newest"),
            std::string::npos);
  Remote again = remote(1);
  again.session.incarnation = 5;
  authority->on_message(again, JoinRequest{});
  settle();
  EXPECT_TRUE(sent_to<JoinAnswer>(1).back().later) << "its key rests";
  EXPECT_EQ(std::count_if(events.begin(), events.end(), [](const EventRecord& e) { return e.state == "ahead"; }), 0);
}

TEST_F(AuthorityTest, AMemberAheadOfTheLogJoinsAgainOnceAnotherHoldsTheStagesVersion) {
  boot_with(2);
  stop();
  boot();
  beat(1, 3);
  EXPECT_EQ(over,
            (std::vector<std::pair<Session, std::string>>{
                {session_of(1),
                 "ahead of the run: it says that it holds version 3, and the authority's log knows 0 as the newest"}}));
  EXPECT_TRUE(fenced.contains(session_of(1)));
  EXPECT_EQ(sent_to<Fenced>(1).size(), 1u);
  EXPECT_EQ(members(), 1u);
}

TEST_F(AuthorityTest, TheOnlyHoldersOfANewerVersionStayAndServeNothingUntilAPersonDecides) {
  boot_with(2);
  // The process comes back to an older log, to which neither member's state belongs.
  stop();
  boot();
  events.clear();
  authority->on_message(remote(1), [&] {
    Beat leaving = beat_of(0);
    leaving.serving = false;
    return leaving;
  }());
  settle();
  beat(2, 3, 1000);
  beat(1, 3, 1000);
  beat(1, 3, 1000);
  EXPECT_TRUE(over.empty());
  EXPECT_EQ(authority->status()[0].ahead, (std::vector<Session>{session_of(1), session_of(2)}));
  EXPECT_EQ(authority->status()[0].serving, 0u);
  EXPECT_TRUE(sent_to<RoundOpen>(1).empty()) << "a round on a state that nobody holds";
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const EventRecord& event) { return event.event == EventKind::kMember; }),
            4)
      << "each is said once: ahead, and not serving";
  // The newer log is back, or who was ahead is another session: at the stage's version it is a member like any other.
  beat(2, 0);
  EXPECT_EQ(authority->status()[0].ahead, std::vector<Session>{session_of(1)});
  beat(1, 3);
  EXPECT_EQ(over.size(), 1u) << "now another one holds the stage's version";
}

TEST_F(AuthorityTest, AJoinersAddressesAreKeptInBoundsSoThatItsRecordFits) {
  boot();
  JoinRequest request;
  request.whereabouts.addresses.assign(8192, std::string(500, 'a'));
  request.whereabouts.addresses.resize(8200, "198.51.100.7:4700");
  join(1, request);
  EXPECT_EQ(log_error, "");
  ASSERT_EQ(members(), 1u);
  EXPECT_EQ(authority->members().stages[0].members[0].whereabouts.addresses,
            std::vector<std::string>(limits::kAddressesMax, "198.51.100.7:4700"));
  reboot();
  EXPECT_EQ(members(), 1u);
}

TEST_F(AuthorityTest, AJoinerThatTheSignedListHasNoRoomForIsRefusedAndTheRunGoesOn) {
  options.stages = 2;
  options.list_bytes_max = 64u << 10;
  boot();
  JoinRequest request;
  request.whereabouts.addresses.assign(limits::kAddressesMax, std::string(128, 'a'));
  std::uint64_t n = 0;
  do join(++n, request);
  while (n < 100 && sent_to<JoinAnswer>(n).at(0).accepted);
  ASSERT_LT(n, 100u) << "a thousand bytes a member: 64 KiB are full before";
  EXPECT_NE(sent_to<JoinAnswer>(n).at(0).reason.find("signed list"), std::string::npos);
  EXPECT_EQ(log_error, "");
  EXPECT_EQ(members(StageId(0)) + members(StageId(1)), n - 1);
  for (std::uint64_t member = 1; member < n; ++member) {
    Beat serving = beat_of(0, 0, authority->members().stages[0].stage);
    serving.stage = sent_to<JoinAnswer>(member).at(0).stage;
    authority->on_message(remote(member), serving);
    settle();
  }
  EXPECT_EQ(log_error, "") << "what changes later had its room";
  reboot();
  EXPECT_EQ(members(StageId(0)) + members(StageId(1)), n - 1);
  // One that comes again takes the place of its older session.
  Remote again = remote(1);
  again.session.incarnation = 5;
  authority->on_message(again, request);
  settle();
  EXPECT_TRUE(sent_to<JoinAnswer>(1).at(0).accepted) << sent_to<JoinAnswer>(1).at(0).reason;
}

TEST_F(AuthorityTest, RefusesTheLogOfAnotherRunAndOfAnotherManifest) {
  const Manifest right{"[run]\n", {1, 2, 3}};
  options.manifest = right;
  boot();
  stop();
  const auto reopened = [&](const Manifest& manifest) {
    options.manifest = manifest;
    storage = std::make_unique<SimStorage>(loop, disk);
    return Authority::open(options, *this, loop, open_authority_log(*storage, kLogPath).value());
  };
  EXPECT_NE(reopened({right.body, {1, 2, 4}}).error().message.find("another run"), std::string::npos);
  EXPECT_NE(reopened({"[run]\nname = 1\n", right.signature}).error().message.find("another manifest"),
            std::string::npos);
  EXPECT_TRUE(reopened(right).ok());
}

TEST_F(AuthorityTest, HowLateAStageIsNoSingleMemberDecides) {
  boot();
  const auto say = [&](std::uint64_t n, std::uint16_t delay_milli, std::uint64_t steps = kDelayWindows) {
    Beat beat = beat_of();
    beat.inner_steps = steps;
    beat.delay_milli = delay_milli;
    authority->on_message(remote(n), beat);
    settle();
    return authority->status().at(0).delay;
  };
  for (std::uint64_t n = 1; n <= 4; ++n) join_and_serve(n);
  EXPECT_FALSE(authority->status().at(0).delay) << "nobody made steps";
  EXPECT_EQ(say(1, 250), 0.25);
  EXPECT_EQ(say(2, 60'000), 0.25) << "of two, neither lifts it alone";
  EXPECT_EQ(say(3, 400), 0.4);
  EXPECT_EQ(say(3, 0), 0.25);
  EXPECT_EQ(say(3, 400), 0.4);
  EXPECT_EQ(say(4, 900, kDelayWindows - 1), 0.4) << "it has not made enough steps";
  EXPECT_EQ(say(4, 900), 0.4);
  EXPECT_EQ(say(1, 700), 0.7) << "more than half say so much or more";
}

TEST_F(AuthorityTest, TakesNoReportsFromStrangers) {
  boot();
  join_and_serve(1);
  beat(1, 0, 300);
  contribute(1, 1, {1});
  agree(2, 1, 9, 1, 10);
  EXPECT_TRUE(commits.empty());
  authority->on_message({peer_of(3), session_of(3), PeerRole::kPeer}, Message(step_number(1)));
  settle();
  EXPECT_TRUE(sent_to<Step>(1).empty()) << "only the trainer's process says that a step is complete";
}

}  // namespace
}  // namespace shoal
