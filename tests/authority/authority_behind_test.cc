// Members that missed a commit and fetch the state: whom rounds wait for, and for how long.
#include "tests/authority/authority_rig.h"

namespace shoal::test {
namespace {

class BehindTest : public AuthorityTest {
 protected:
  void behind(std::uint64_t n, std::uint64_t version) {
    Beat beat = beat_of(version);
    beat.behind = true;
    authority->on_message(remote(n), beat);
    settle();
  }
  std::size_t opened() const { return sent_to<RoundOpen>(1).size(); }
  // The members 1..`all` contribute to round `round`, 1..`agreed` get its sum, and the grace time is over.
  void commit_without_some(std::uint64_t round, std::uint64_t all, std::uint64_t agreed) {
    const std::uint64_t weight = all * (all + 1) / 2;
    for (std::uint64_t n = 1; n <= all; ++n) contribute(n, round, {round});
    for (std::uint64_t n = 1; n <= agreed; ++n) agree(n, round, static_cast<std::uint8_t>(round), weight, 10 * weight);
    loop.run_for(options.round_grace);
    settle();
    ASSERT_EQ(commits.size(), round);
  }
  // Four serve; 4 misses the first round and 3 the second.
  void lose_two_of_four() {
    boot();
    for (std::uint64_t n = 1; n <= 4; ++n) join_and_serve(n);
    for (std::uint64_t n = 1; n <= 4; ++n) beat(n, 0, 100);
    commit_without_some(1, 4, 3);
    behind(4, 0);
    for (std::uint64_t n = 1; n <= 3; ++n) beat(n, 1, 100);
    commit_without_some(2, 3, 2);
    behind(4, 0);
    behind(3, 1);
  }
};

TEST_F(AuthorityTest, ACommitSaysWhoWasWaitedForAndForHowLong) {
  boot_with(3);
  contribute_all(3);
  agree(2, 1, 7, 6, 60);
  agree(3, 1, 7, 6, 60);
  loop.run_for(options.round_grace / 2);
  agree(1, 1, 7, 6, 60);
  settle();
  const std::vector<EventRecord> told_of = told(EventKind::kRoundCommit);
  ASSERT_EQ(told_of.size(), 1u);
  EXPECT_EQ(told_of[0].rounds.waited_for, session_of(1));
  EXPECT_EQ(told_of[0].rounds.waited_ms, static_cast<std::uint64_t>(options.round_grace / 2 / 1ms));
  const auto& waits = authority->tally().waits;
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits.begin()->first, std::pair(session_of(1).peer_tag, StageId(0)));
  EXPECT_EQ(waits.begin()->second.rounds, 1u);
  EXPECT_EQ(waits.begin()->second.time, options.round_grace / 2);
}

TEST_F(BehindTest, RoundsDoNotWaitForMembersThatFetchTheState) {
  lose_two_of_four();
  for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 2, 100);
  ASSERT_EQ(opened(), 3u) << "two of four, and the other two are behind";
  EXPECT_EQ(sent_to<RoundOpen>(1).back().members.size(), 2u);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 3, {3});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 3, 3, 3, 30);
  settle();
  for (std::uint64_t n = 4; n >= 1; --n) beat(n, 3, 100);
  ASSERT_EQ(opened(), 4u);
  EXPECT_EQ(sent_to<RoundOpen>(1).back().members.size(), 4u) << "they are back in";
}

TEST_F(BehindTest, WhoOnlyShowsAnOlderVersionMayBeAboutToFollow) {
  boot();
  join_and_serve(1);
  join_and_serve(2);
  for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 0, 100);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, {1});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 1, 1, 3, 30);
  settle();
  beat(2, 0);  // its device has not come to the commit
  beat(1, 1, 200);
  EXPECT_EQ(opened(), 1u);
  beat(2, 1, 100);
  EXPECT_EQ(opened(), 2u);
}

TEST_F(BehindTest, TheNextRoundWaitsAsLongAsAnOvertakenFetchTookAndNotOftenerThanATenthOfTheTime) {
  lose_two_of_four();
  loop.run_for(4s);
  behind(3, 1);
  behind(4, 1);  // it fetched version 1 in some 6 s; the stage is at 2
  const TimePoint held = loop.now();
  for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 2, 100);
  EXPECT_EQ(opened(), 2u);
  while (opened() == 2 && loop.now() < held + 20s) {
    for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 2, 100);
    loop.run_for(100ms);
  }
  EXPECT_EQ(opened(), 3u) << "not for ever";
  EXPECT_GE(loop.now() - held, 8500ms);
  EXPECT_LE(loop.now() - held, 11s);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 3, {3});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 3, 3, 3, 30);
  settle();
  behind(4, 2);  // overtaken again
  for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 3, 100);
  EXPECT_EQ(opened(), 4u) << "it waited a moment ago";
}

// A joiner is behind from its beginning, and has nothing at first.
class JoinerBehindTest : public BehindTest {
 protected:
  void fetching(std::uint64_t n, std::uint64_t version) {
    Beat beat = beat_of(version);
    beat.behind = true;
    beat.serving = false;
    authority->on_message(remote(n), beat);
    settle();
  }
  void keep_beating(Duration time, std::uint64_t version) {
    for (const TimePoint end = loop.now() + time; loop.now() < end; loop.run_for(100ms))
      for (std::uint64_t n = 1; n <= 2; ++n) beat(n, version, 100);
  }
  void commit_of_two(std::uint64_t round) {
    for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, round, {round});
    for (std::uint64_t n = 1; n <= 2; ++n) agree(n, round, static_cast<std::uint8_t>(round), 3, 30);
    settle();
    ASSERT_EQ(commits.size(), round);
  }
  // Two serve at version 1, and 3 fetches that when a second round is opened.
  void begin() {
    boot();
    join_and_serve(1);
    join_and_serve(2);
    for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 0, 100);
    commit_of_two(1);
    join(3);
    fetching(3, 0);
    keep_beating(6s, 1);  // beyond the hold for joiners
    ASSERT_EQ(opened(), 2u);
  }
};

TEST_F(JoinerBehindTest, TheNextRoundWaitsForOneWhoseFetchWasOvertaken) {
  begin();
  commit_of_two(2);
  fetching(3, 1);  // version 1 is here whole, some 6 s behind its beginning
  keep_beating(5s, 2);
  EXPECT_EQ(opened(), 2u) << "held, though joiners had their hold a moment ago";
  fetching(3, 2);
  keep_beating(5s, 2);
  EXPECT_EQ(opened(), 3u) << "nobody fetches what is not the newest";
}

TEST_F(JoinerBehindTest, ARoundThatIsOpenThenTakesNothingOfTheHold) {
  begin();
  commit_of_two(2);
  keep_beating(100ms, 2);
  ASSERT_EQ(opened(), 3u);
  fetching(3, 1);
  loop.run_for(5s);
  commit_of_two(3);
  keep_beating(7s, 3);
  EXPECT_EQ(opened(), 3u);
}

TEST_F(JoinerBehindTest, WhatAJoinerHasWhileItFetchesIsNothingForOthers) {
  begin();
  commit_of_two(2);
  fetching(3, 1);
  for (const Member& member : authority->members().stages.front().members)
    if (member.session == session_of(3)) {
      EXPECT_EQ(member.version, Version(0));
    }
}

}  // namespace
}  // namespace shoal::test
