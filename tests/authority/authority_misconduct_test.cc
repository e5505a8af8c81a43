// A member that does harm with well-formed messages: what it does is bounded, and its session ends by name.
#include <functional>

#include "common/log.h"
#include "tests/authority/authority_rig.h"

namespace shoal {
namespace {

using test::AuthorityTest;
using test::peer_of;
using test::session_of;

class AuthorityMisconductTest : public AuthorityTest {
 protected:
  void SetUp() override { set_log_level(LogLevel::kError); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }

  JoinAnswer ask_to_join(const Remote& from, const JoinRequest& request = {}) {
    authority->on_link_up(from);
    authority->on_message(from, request);
    settle();
    for (auto at = sent.rbegin(); at != sent.rend(); ++at)
      if (const auto* answer = std::get_if<JoinAnswer>(&at->second); answer && at->first == from.peer) return *answer;
    ADD_FAILURE() << "no answer";
    return {};
  }
  // Members 1 and 2 do what they are asked, so that each round that is committed gives 3 another trial; 3 answers those
  // that it is in with `refuse`. Until a session is over or it refused `most`. Returns how often it did.
  std::uint32_t refuse_rounds(int turns, std::uint32_t most, const std::function<void(const RoundOpen&)>& refuse) {
    std::uint64_t seen = 0;
    std::uint32_t refusals = 0;
    for (int turn = 0; turn < turns && over.empty() && refusals < most; ++turn) {
      for (const std::uint64_t n : {3, 1, 2}) beat(n, version, 100);  // 3 first: a round begins with those there
      loop.run_for(300ms);
      const auto opened = sent_to<RoundOpen>(1);
      if (opened.empty() || opened.back().round.value == seen) continue;
      const RoundOpen open = opened.back();
      seen = open.round.value;
      if (std::count(open.members.begin(), open.members.end(), session_of(3)) > 0) {
        refuse(open);
        settle();
        ++refusals;
        continue;
      }
      for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, seen, {10 * seen + n});
      for (std::uint64_t n = 1; n <= 2; ++n) agree(n, seen, 7, 3, 30);
      settle();
      version = open.base.value + 1;
    }
    return refusals;
  }
  // It was not ready, which it says when its time is over or at once. At most four times more than a member may refuse.
  std::uint32_t not_ready(bool waits) {
    options.round_budget = 4s;
    boot_with(3);
    return refuse_rounds(400, StageRounds::kRoundRefusalsMax + 4, [&](const RoundOpen& open) {
      if (waits) keep_alive(3, std::chrono::milliseconds(open.budget_ms) * 6 / 10, version);
      fail_round(3, open.round.value, session_of(3), "the step or snapshot was not ready within the budget");
    });
  }
  bool listed_serving(std::uint64_t n) const {
    for (const Member& member : authority->members().stages[0].members)
      if (member.session == session_of(n)) return member.serving;
    return false;
  }
  std::uint64_t version = 0;  // of members 1 to 3
};

TEST_F(AuthorityMisconductTest, WhoAnswersEveryRoundWithAFailureIsEndedByNameAndItsPeerRests) {
  boot_with(3);
  refuse_rounds(100, 100, [&](const RoundOpen& open) {
    fail_round(3, open.round.value, session_of(1), "no" + std::string(limits::kTextMax - 2, '!'));
  });
  EXPECT_GE(commits.size(), 3u) << "the others go on meanwhile";
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(3));
  EXPECT_NE(over[0].second.find("brought nothing: no"), std::string::npos) << over[0].second;
  EXPECT_TRUE(fenced.contains(session_of(3)));

  const Remote next{peer_of(3), Session{session_of(3).peer_tag, 99}, PeerRole::kPeer};
  const JoinAnswer refused = ask_to_join(next);
  EXPECT_FALSE(refused.accepted);
  EXPECT_TRUE(refused.later) << "it asks again by itself";
  EXPECT_NE(refused.reason.find("ended for what it did"), std::string::npos) << refused.reason;
  keep_alive(2, kPeerRest.first + 1s, version);
  EXPECT_TRUE(ask_to_join(next).accepted);
}

// It may be slow, or wait for what all wait for.
TEST_F(AuthorityMisconductTest, WhoIsNotReadyWithinTheBudgetIsNotEndedForIt) {
  EXPECT_EQ(not_ready(true), StageRounds::kRoundRefusalsMax + 4);
  EXPECT_TRUE(over.empty());
}

TEST_F(AuthorityMisconductTest, WhoSaysSoLongBeforeItsTimeIsOverIs) {
  EXPECT_EQ(not_ready(false), StageRounds::kRoundRefusalsMax);
  EXPECT_EQ(over.size(), 1u);
}

TEST_F(AuthorityMisconductTest, WhoTogglesServingMakesFewRecordsAndServesInTheEnd) {
  boot_with(2);
  const auto records = [&] {
    std::size_t count = 0;
    for (const LogRecord& record : durable_log().records)
      if (const auto* member = std::get_if<LogMember>(&record)) count += member->member.session == session_of(2);
    return count;
  };
  for (int i = 0; i < 2000; ++i) {
    Beat toggled = beat_of();
    toggled.serving = i % 2 == 1;
    authority->on_message(remote(2), toggled);
    loop.run_for(1ms);
  }
  settle();
  EXPECT_LE(records(), 2 * (static_cast<std::size_t>(kServingAtOnce) + 2));
  EXPECT_TRUE(over.empty());
  keep_alive(2, from_seconds(1 / kServingPerSecond) + 2s);
  EXPECT_TRUE(listed_serving(2));
}

TEST_F(AuthorityMisconductTest, WhoDoesNotServeAnyMoreIsShownSoAtOnceHoweverOftenItChanged) {
  boot_with(2);
  for (int i = 0; i < 50; ++i) {
    Beat toggled = beat_of();
    toggled.serving = i % 2 == 1;
    authority->on_message(remote(2), toggled);
  }
  keep_alive(2, from_seconds(1 / kServingPerSecond) + 2s);
  ASSERT_TRUE(listed_serving(2));
  Beat stopped = beat_of();
  stopped.serving = false;
  authority->on_message(remote(2), stopped);
  settle();
  EXPECT_FALSE(listed_serving(2));
}

// Its weight would be its share of the mean.
TEST_F(AuthorityMisconductTest, AWeightThatIsNotThatOfItsEntriesEndsItsSession) {
  options.entry_targets = 4;
  boot_with(3);
  beat(1, 0, 300);
  const auto bring = [&](std::uint64_t n, std::uint64_t weight, std::vector<std::uint64_t> entries) {
    RoundReport report;
    report.round = RoundId(1);
    report.weight = weight;
    report.entries = std::move(entries);
    authority->on_message(remote(n), report);
    settle();
  };
  bring(1, 8, {1, 2});
  bring(3, 0, {});
  EXPECT_TRUE(over.empty());
  bring(2, std::uint64_t{1} << 60, {3});
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(2));
  EXPECT_NE(over[0].second.find("for 1 entries of 4 targets"), std::string::npos) << over[0].second;
}

// Else each would rest in its turn, and no round would ever be agreed.
TEST_F(AuthorityMisconductTest, WhoSaysOfOneAfterAnotherThatItsPartsCannotBeUsedIsEnded) {
  boot_with(4);
  for (std::uint64_t round = 1; round <= 2; ++round) {
    for (std::uint64_t n = 1; n <= 4; ++n) beat(n, 0, 300);
    for (int i = 0; i < 10; ++i) loop.run_for(100ms);
    for (std::uint64_t n = 1; n <= 4; ++n) contribute(n, round, {10 * round + n});
    RoundReport report;
    report.kind = ReportKind::kFailed;
    report.round = RoundId(round);
    report.malformed = session_of(round);
    report.reason = "the part cannot be used";
    authority->on_message(remote(4), report);
    settle();
  }
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(4));
  EXPECT_NE(over[0].second.find("one member after another"), std::string::npos) << over[0].second;
}

// What three members claim as the longest job of theirs, and the seconds that a round gets by it.
class ClaimTest : public AuthorityMisconductTest {
 protected:
  std::uint32_t round_seconds(const std::vector<Duration>& claims) {
    boot_with(claims.size());
    for (std::uint64_t n = 1; n <= claims.size(); ++n) {
      Beat beat = beat_of();
      beat.longest_ms = static_cast<std::uint32_t>(claims[n - 1] / 1ms);
      authority->on_message(remote(n), beat);
    }
    beat(1, 0, 300);
    return sent_to<RoundOpen>(1).at(0).budget_ms / 1000;
  }
};

TEST_F(ClaimTest, OfOneMemberHoldsNoRoundUp) {
  EXPECT_EQ(round_seconds({1s, 1s, 600s}), 30u + 3 * 10u) << "three times the least patience with anybody";
}
TEST_F(ClaimTest, OfTheOnlyOtherMemberHoldsNoRoundUp) { EXPECT_EQ(round_seconds({1s, 600s}), 30u + 3 * 10u); }
TEST_F(ClaimTest, OfMostMembersIsBelieved) { EXPECT_EQ(round_seconds({50s, 50s, 600s}), 30u + 3 * 50u); }

class SquatterTest : public AuthorityMisconductTest {
 protected:
  void squat(std::uint64_t n, StageId stage = StageId(0)) {
    Beat idle = beat_of(0, 0, stage);
    idle.serving = false;
    authority->on_message(remote(n), idle);
  }
};

TEST_F(SquatterTest, WhoNeitherFetchesNorServesIsEndedAndItsPeerRests) {
  boot_with(2);
  join(3);
  const auto pass = [&](Duration time) {
    for (const TimePoint end = loop.now() + time; loop.now() < end;) {
      squat(3);
      keep_alive(2, 1s);
    }
  };
  pass(38s);
  EXPECT_TRUE(over.empty()) << "the least time of the state's bytes, and the membership time";
  pass(5s);
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(3));
  EXPECT_NE(over[0].second.find("neither fetched the stage's state nor served"), std::string::npos) << over[0].second;
  EXPECT_TRUE(ask_to_join({peer_of(3), Session{session_of(3).peer_tag, 99}, PeerRole::kPeer}).later);
}

// Rounds are fast, and its line is not.
TEST_F(SquatterTest, WhoFetchesHasTheTimeOfTheStateOverASlowLine) {
  options.round_budget = 30s;
  options.payload_bytes = {2'500'000};
  boot_with(2);
  join(3);
  const double state = 2'500'000 * (1.0 + static_cast<double>(traits_of(options.rule).shared_arrays));
  const Duration least = from_seconds(2 * state / 125'000);
  const auto pass = [&](Duration time) {
    for (const TimePoint end = loop.now() + time; loop.now() < end;) {
      squat(3);
      keep_alive(2, 1s);
    }
  };
  pass(least);
  EXPECT_TRUE(over.empty());
  pass(15s);
  EXPECT_EQ(over.size(), 1u) << "but no place is held for ever";
}

TEST_F(SquatterTest, BeforeTheFirstOneServesThereIsTheTimeOfAFirstJob) {
  boot();
  join(1);
  for (int i = 0; i < 330; ++i) {
    squat(1);
    loop.run_for(1s);
  }
  EXPECT_TRUE(over.empty());
}

TEST_F(SquatterTest, AJoinerIsPlacedAsIfTheyWereNotThere) {
  options.stages = 2;
  boot();
  join_and_serve(1);  // stage 0
  join(2);
  beat(2, 0, 0, StageId(1));
  join_and_serve(3);  // stage 0
  JoinRequest wish;
  wish.wish = StageId(1);
  for (std::uint64_t n = 4; n <= 6; ++n) join(n, wish);
  for (int i = 0; i < 12; ++i) {
    for (const std::uint64_t n : {1, 3}) beat(n);
    beat(2, 0, 0, StageId(1));
    for (std::uint64_t n = 4; n <= 6; ++n) squat(n, StageId(1));
    loop.run_for(900ms);
  }
  ASSERT_EQ(members(StageId(1)), 4u);
  EXPECT_EQ(ask_to_join(remote(7)).stage, StageId(1));
}

class ContradictionTest : public AuthorityMisconductTest {
 protected:
  // Of three members, each with its weight n and tag 10 n; `sums`: the weights that they agree on.
  void round_of(std::uint64_t round, const std::vector<std::uint64_t>& sums) {
    for (std::uint64_t n = 1; n <= sums.size(); ++n) beat(n, version, 300);
    loop.run_for(300ms);
    for (std::uint64_t n = 1; n <= sums.size(); ++n) contribute(n, round, {100 * round + n});
    for (std::uint64_t n = 1; n <= sums.size(); ++n) agree(n, round, 7, sums[n - 1], 10 * sums[n - 1]);
    settle();
    version = commits.size();
  }
};

TEST_F(ContradictionTest, WhoAgreesOnAnotherWeightIsLeftOutOnceAndEndedAtTheSecondTime) {
  boot_with(3);
  round_of(1, {6, 6, 7});
  EXPECT_EQ(commits.size(), 1u) << "the others agree, on what was contributed";
  EXPECT_TRUE(over.empty());
  ASSERT_EQ(told(EventKind::kRoundFailed).size(), 1u);
  EXPECT_EQ(told(EventKind::kRoundFailed)[0].about, session_of(3));
  for (std::uint64_t n : {1, 2, 3}) beat(n, 1, 300);
  loop.run_for(300ms);
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 2u);
  EXPECT_EQ(sent_to<RoundOpen>(1)[1].members.size(), 2u) << "without it";
  round_of(2, {3, 3});
  ASSERT_EQ(commits.size(), 2u);
  beat(3, 2);
  round_of(3, {6, 6, 8});
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(3));
  EXPECT_NE(over[0].second.find("in two rounds"), std::string::npos) << over[0].second;
}

// It told the others another weight than it told us; what they say is what they got.
TEST_F(ContradictionTest, WhoToldTheOthersAnotherWeightThanUsIsNamedAndNotTheOthers) {
  boot_with(3);
  round_of(1, {9, 9, 6});
  EXPECT_TRUE(commits.empty());
  ASSERT_EQ(told(EventKind::kRoundFailed).size(), 1u);
  EXPECT_EQ(told(EventKind::kRoundFailed)[0].about, session_of(3));
}

TEST_F(ContradictionTest, NobodyIsNamedWhereAllSayTheSameOtherWeight) {
  boot_with(3);
  round_of(1, {9, 9, 9});
  EXPECT_TRUE(commits.empty());
  EXPECT_TRUE(told(EventKind::kRoundFailed).empty());
}

TEST_F(ContradictionTest, OfTwoTheOneThatContradictsWhatWasContributedIsNamedHoweverEarlyItSpeaks) {
  boot_with(2);
  round_of(1, {4, 3});
  round_of(2, {4, 3});
  EXPECT_TRUE(commits.empty());
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(1));
}

// What they say of themselves is not looked at: another host each, or one that is not theirs.
TEST_F(AuthorityMisconductTest, ManyIdentitiesOfOneHostAreAdmittedOneAfterAnother) {
  boot();
  host = "192.0.2.7";
  std::size_t accepted = 0;
  JoinRequest request;
  for (std::uint64_t n = 1; n <= 200; ++n) {  // in 4 s
    request.whereabouts.addresses = {"192.0.3." + std::to_string(n) + ":20000",
                                     "192.0.2.8:" + std::to_string(20'000 + n)};
    const JoinAnswer answer = ask_to_join(remote(n), request);
    accepted += answer.accepted ? 1 : 0;
    EXPECT_NE(answer.accepted, answer.later) << answer.reason;
    EXPECT_FALSE(answer.unreachable) << "its patience is not for that";
  }
  EXPECT_GE(accepted, static_cast<std::size_t>(AdmissionPace::kAtOnce));
  EXPECT_LE(accepted, static_cast<std::size_t>(AdmissionPace::kAtOnce + 5 * AdmissionPace::kPerSecond));
  EXPECT_EQ(members(), accepted);
  host = "192.0.2.8";
  EXPECT_TRUE(ask_to_join(remote(201), request).accepted) << "of another host, which the others claimed";
}

}  // namespace
}  // namespace shoal
