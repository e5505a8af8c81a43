// What the authority sends of its list: what changed, to a member that has the rest; nothing when nothing changed. And
// how the bytes of a second grow with the members.
#include "tests/authority/authority_rig.h"
#include "transport/signed_list.h"

namespace shoal {
namespace {

using test::AuthorityTest;
using test::session_of;

class AuthorityListsTest : public AuthorityTest {
 protected:
  std::size_t lists_to(std::uint64_t n) const { return sent_to<Members>(n).size(); }
  std::size_t changes_to(std::uint64_t n) const { return sent_to<MembersChange>(n).size(); }
  void ask(std::uint64_t n, Epoch epoch = Epoch(0), std::uint64_t id = 0) {
    authority->on_message(remote(n), MembersQuery{epoch, id});
    settle();
  }
};

TEST_F(AuthorityListsTest, AMemberGetsTheListOnceAndThenWhatChanged) {
  boot();
  loop.run_for(1s);
  join(1);
  EXPECT_EQ(lists_to(1), 1u);
  const MemberList given = open_member_list(sent_to<Members>(1).at(0), options.run).value();
  loop.run_for(1s);
  sent.clear();
  join(2);
  loop.run_for(1s);
  EXPECT_EQ(lists_to(1), 0u);
  EXPECT_EQ(lists_to(2), 1u);
  ASSERT_EQ(changes_to(1), 1u);
  const ListChange change = open_list_change(sent_to<MembersChange>(1)[0], options.run).value();
  MemberList followed = given;
  EXPECT_EQ(change.base, given.epoch);
  ASSERT_TRUE(apply_change(change, followed).ok());
  EXPECT_EQ(followed.stages[0].members.size(), 2u);
}

// What was told was durable: so a member that has more than the log shows that an older log was put back, or it lies.
TEST_F(AuthorityListsTest, AMemberWithANewerListThanTheLogsIsNamedOnce) {
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join(n);
  loop.run_for(1s);
  sent.clear();
  const auto named = [&] {
    std::size_t count = 0;
    for (const EventRecord& e : told(EventKind::kMember)) count += e.state == "newer list" && e.about == session_of(1);
    return count;
  };
  const Epoch newest = authority->members().epoch;
  ask(1, newest, 1);
  EXPECT_EQ(named(), 0u);
  for (int i = 0; i < 3; ++i) {
    loop.run_for(2s);
    ask(1, Epoch(newest.value + 7), 1);
  }
  EXPECT_EQ(named(), 1u);
  EXPECT_EQ(lists_to(1), 1u) << "for the first question alone: it would take none that is older";
  EXPECT_EQ(members(), 2u) << "its word ends nothing";
}

TEST_F(AuthorityListsTest, NothingIsSentWhenNothingChanged) {
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_serve(n);
  loop.run_for(1s);
  sent.clear();
  keep_alive(3, 8s);
  for (std::uint64_t n = 1; n <= 3; ++n) EXPECT_EQ(lists_to(n) + changes_to(n), 0u);
}

TEST_F(AuthorityListsTest, WhatChangesInAMomentGoesTogether) {
  boot();
  join(1);
  loop.run_for(1s);
  sent.clear();
  for (std::uint64_t n = 2; n <= 30; ++n) authority->on_message(remote(n), JoinRequest{});
  loop.run_for(1s);
  EXPECT_EQ(members(), 30u);
  EXPECT_LE(changes_to(1), 4u);
  EXPECT_GE(changes_to(1), 1u);
}

TEST_F(AuthorityListsTest, WhoAsksGetsWhatItLacksOnceASecond) {
  boot();
  join(1);
  const MemberList given = open_member_list(sent_to<Members>(1).at(0), options.run).value();
  const std::uint64_t id = list_id(sent_to<Members>(1).at(0).body);
  loop.run_for(1s);
  for (std::uint64_t n = 2; n <= 12; ++n) join(n);
  loop.run_for(1s);
  sent.clear();
  ask(1, given.epoch, id);
  EXPECT_GE(changes_to(1) + lists_to(1), 1u);
  sent.clear();
  for (int i = 0; i < 20; ++i) ask(1);
  EXPECT_EQ(lists_to(1), 0u) << "400 ms after it was answered";
  loop.run_for(1s);
  for (int i = 0; i < 20; ++i) ask(1);
  EXPECT_EQ(lists_to(1), 1u);
  ask(99);
  EXPECT_EQ(lists_to(99), 0u) << "no member";
}

TEST_F(AuthorityListsTest, WhoseLinkBrokeIsToldNothingUntilItAsks) {
  boot();
  join(1);
  join(2);
  loop.run_for(2s);
  sent.clear();
  authority->on_link_down(remote(1));
  join(3);
  loop.run_for(1s);
  authority->on_link_up(remote(1));
  join(4);
  loop.run_for(1s);
  EXPECT_EQ(changes_to(1) + lists_to(1), 0u);
  EXPECT_EQ(changes_to(2), 2u);
  const Epoch newest = authority->members().epoch;
  beat(1);
  ASSERT_FALSE(sent_to<BeatAck>(1).empty());
  EXPECT_EQ(sent_to<BeatAck>(1).back().list_epoch, newest) << "by this it sees what it missed";
  ask(1);
  EXPECT_EQ(lists_to(1), 1u);
  loop.run_for(1s);
  join(5);
  EXPECT_EQ(changes_to(1), 1u);
}

TEST_F(AuthorityListsTest, VersionsDoNotGoBackOverARestart) {
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_serve(n);
  loop.run_for(1s);
  keep_alive(3, 2s);
  const Epoch before = sent_to<BeatAck>(1).back().list_epoch;
  reboot();
  beat(1);
  EXPECT_GE(sent_to<BeatAck>(1).back().list_epoch, before);
  ask(1, before, 12345);
  EXPECT_EQ(lists_to(1), 1u) << "it holds another list of that epoch";
  join(4);
  loop.run_for(1s);
  ASSERT_GE(changes_to(1), 1u);
  EXPECT_GT(open_list_change(sent_to<MembersChange>(1).back(), options.run)->epoch, before);
}

// The entries that a round secures are told to their member and the trainer alone.
TEST_F(AuthorityListsTest, ACommitNamesEachMembersOwnEntries) {
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_serve(n);
  beat(1, 0, 600);
  for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, 1, {n, n + 10});
  for (std::uint64_t n = 1; n <= 3; ++n) agree(n, 1, 7, 6, 60);
  settle();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].secured.size(), 3u);
  for (std::uint64_t n = 1; n <= 3; ++n) {
    ASSERT_EQ(sent_to<RoundCommit>(n).size(), 1u);
    const RoundCommit told = sent_to<RoundCommit>(n)[0];
    ASSERT_EQ(told.secured.size(), 1u);
    EXPECT_EQ(told.secured[0].session, session_of(n));
    EXPECT_EQ(told.secured[0].serials, (std::vector<std::uint64_t>{n, n + 10}));
  }
}

TEST_F(AuthorityListsTest, InALargeSwarmWhatChangesInASecondGoesTogether) {
  boot();
  for (std::uint64_t n = 1; n <= 200; ++n) authority->on_message(remote(n), JoinRequest{});
  loop.run_for(3s);
  ASSERT_EQ(members(), 200u);
  sent.clear();
  for (std::uint64_t n = 1; n <= 40; ++n) {  // one begins to serve each 100 ms
    authority->on_message(remote(n), beat_of());
    loop.run_for(100ms);
  }
  EXPECT_LE(changes_to(200), 5u);
  EXPECT_GE(changes_to(200), 4u);
}

// An opening names all members to each of them.
TEST_F(AuthorityListsTest, TheOpeningsThatASecondRepeatsGrowWithTheMembersAndNotWithTheirSquare) {
  options.round_budget = 60s;
  boot_with(40);
  beat(1, 0, 4000);
  ASSERT_EQ(sent_to<RoundOpen>(40).size(), 1u);
  sent.clear();
  for (int second = 0; second < 8; ++second) {
    for (std::uint64_t n = 1; n <= 40; ++n) authority->on_message(remote(n), beat_of());
    loop.run_for(1s);
  }
  EXPECT_GE(sent_to<RoundOpen>(40).size(), 1u);
  EXPECT_LE(sent_to<RoundOpen>(40).size(), 2u) << "of 8 beats: each 4 s";
  sent.clear();
  authority->on_link_up(remote(40));
  EXPECT_EQ(sent_to<RoundOpen>(40).size(), 1u) << "what a lost link took comes at once";
}

}  // namespace
}  // namespace shoal
