// A log that says the same in fewer records: what an authority makes of it after a restart, and what it leaves out.
#include <algorithm>

#include "tests/authority/authority_rig.h"

namespace shoal {
namespace {

using test::AuthorityTest;
using test::digest_number;
using test::kLogPath;
using test::session_of;

class AuthorityCompactTest : public AuthorityTest {
 protected:
  // Round `n` of members 1 and 2 makes version n of the entries 2n and 2n + 1.
  void commit(std::uint64_t n) {
    for (std::uint64_t i = 1; i <= 2; ++i) beat(i, n - 1, 300);
    for (std::uint64_t i = 1; i <= 2; ++i) contribute(i, n, {2 * n + i - 1});
    for (std::uint64_t i = 1; i <= 2; ++i) agree(i, n, static_cast<std::uint8_t>(n), 3, 30);
    settle();
  }
  void commits_to(std::uint64_t last) {
    for (std::uint64_t n = authority->status()[0].version.value + 1; n <= last; ++n) commit(n);
    ASSERT_EQ(authority->status()[0].version, Version(last));
  }
  std::size_t log_bytes() const { return disk.durable_content(kLogPath)->size(); }
  void forget_what_was_told() {
    commits.clear();
    restored.clear();
    over.clear();
    fenced.clear();
    events.clear();
    newest_epoch = Epoch(0);
  }
};

TEST_F(AuthorityCompactTest, BringsBackWhatTheWholeLogWouldHave) {
  boot_with(4);
  authority->on_message(remote(3), Leave{false});
  settle();
  keep_alive(2, 13s);  // 4 is fenced
  commits_to(3);
  beat(1, 3, 300);  // opens round 4, never committed
  const auto stands = [this] {
    std::map<Session, bool> members;
    for (const Member& member : authority->members().stages[0].members) members[member.session] = member.serving;
    return members;
  };
  const auto members_before = stands();
  const Epoch epoch_before = authority->members().epoch;
  const RoundTally tally_before = authority->tally();
  ASSERT_TRUE(compact());
  forget_what_was_told();
  reboot();
  EXPECT_EQ(stands(), members_before);
  EXPECT_GE(authority->members().epoch, epoch_before) << "who knows that list takes this one";
  EXPECT_EQ(authority->status()[0].version, Version(3));
  EXPECT_EQ(authority->members().stages[0].digest, digest_number(3));
  EXPECT_EQ(authority->tally().rounds, tally_before.rounds);
  EXPECT_EQ(authority->tally().faults, 1u);
  EXPECT_EQ(authority->tally().shares, tally_before.shares);
  EXPECT_EQ(fenced, std::set<Session>{session_of(4)}) << "who left is refused nothing";
  for (std::uint64_t n = 3; n <= 4; ++n) {
    EXPECT_TRUE(authority->knows(session_of(n)));
    join(n);
    EXPECT_TRUE(sent_to<JoinAnswer>(n).empty());
  }
  EXPECT_EQ(commits.size(), 3u) << "the trainer hears again what its own log may not have";
  EXPECT_EQ(over.size(), 2u);
  authority->on_link_up(remote(1));
  ASSERT_EQ(sent_to<RoundAbandon>(1).size(), 1u) << "the round that was open is over";
  ASSERT_FALSE(sent_to<RoundCommit>(1).empty());
  EXPECT_EQ(sent_to<RoundCommit>(1).back().version, Version(3));
  for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 3, 300);
  ASSERT_FALSE(sent_to<RoundOpen>(1).empty());
  EXPECT_EQ(sent_to<RoundOpen>(1).back().round, RoundId(5)) << "ids of rounds are never reused";
}

TEST_F(AuthorityCompactTest, ACompactedLogIsCompactedAgainAndSaysTheSame) {
  boot_with(3);
  authority->on_message(remote(3), Leave{false});
  settle();
  commits_to(5);
  ASSERT_TRUE(compact());
  const auto first = *disk.durable_content(kLogPath);
  ASSERT_TRUE(compact());
  EXPECT_EQ(*disk.durable_content(kLogPath), first);
}

TEST_F(AuthorityCompactTest, ItsBytesDoNotGrowWithTheRunsLength) {
  boot_with(2);
  commits_to(100);
  trainer_settled = Version(100);
  loop.run_for(1s);
  ASSERT_TRUE(compact());
  const std::size_t after_100 = log_bytes();
  trainer_settled = Version(200);
  // The stage goes back by as many versions as RecentCommits has room for, 1000 of these and more.
  commits_to(200);
  const std::size_t whole = log_bytes();
  ASSERT_TRUE(compact());
  EXPECT_LT(log_bytes(), whole);
  EXPECT_LT(log_bytes(), 2 * after_100 + 1000);
  EXPECT_EQ(authority->log_bytes(), log_bytes());
  reboot();
  EXPECT_EQ(authority->status()[0].version, Version(200));
  EXPECT_EQ(authority->tally().rounds, 200u);
}

// What the trainer's log durably says of a version, it need not hear again; the rest it does.
TEST_F(AuthorityCompactTest, TellsAgainWhatTheTrainersLogMayLack) {
  boot_with(2);
  commits_to(6);
  keep_alive(2, 20s, 6);
  trainer_settled = Version(4);
  commits_to(8);
  ASSERT_TRUE(compact());
  forget_what_was_told();
  reboot();
  ASSERT_EQ(commits.size(), 4u);
  EXPECT_EQ(commits.front().version, Version(5));
  EXPECT_EQ(commits.back().version, Version(8));
  EXPECT_EQ(commits.back().secured.size(), 2u);
  EXPECT_EQ(told(EventKind::kRoundCommit).size(), 4u);
}

TEST_F(AuthorityCompactTest, TheStageStillGoesBackOverItAndSaysWhatThatTakes) {
  options.restore_after = 60s;
  boot_with(2);
  commits_to(3);
  ASSERT_TRUE(compact());
  reboot();
  // Member 1 comes back with version 2, and nobody else does.
  Remote again = remote(1);
  again.session.incarnation += 1000;
  JoinRequest request;
  request.held_stage = StageId(0);
  request.held = {{Version(2), digest_number(2)}};
  authority->on_link_up(again);
  authority->on_message(again, request);
  for (int i = 0; i < 80; ++i) {
    Beat waits = beat_of();
    waits.serving = false;
    waits.held = {{Version(2), digest_number(2)}};
    authority->on_message(again, waits);
    loop.run_for(1s);
  }
  ASSERT_EQ(authority->status()[0].version, Version(4)) << "version 2, under a new name";
  const auto lines = told(EventKind::kRestored);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].back_to, Version(2));
  ASSERT_EQ(lines[0].secured->size(), 2u);
  EXPECT_EQ((*lines[0].secured)[0].serials, std::vector<std::uint64_t>{6});
  EXPECT_EQ((*lines[0].secured)[1].serials, std::vector<std::uint64_t>{7});
  // And once that is compacted, it is told again as it was.
  ASSERT_TRUE(compact());
  forget_what_was_told();
  reboot();
  const auto after = told(EventKind::kRestored);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].tag, lines[0].tag);
  EXPECT_EQ(after[0].secured->size(), 2u);
  EXPECT_EQ(authority->tally().taken_back, 2u);
  EXPECT_EQ(authority->tally().shares.at({session_of(1).peer_tag, StageId(0)}), 2u);
}

TEST_F(AuthorityCompactTest, DecisionsWaitForItAndAreDurableBehindIt) {
  boot_with(2);
  commits_to(2);
  disk.set_sync_delay(300ms);
  bool done = false;
  ASSERT_TRUE(authority->compact([&](const Status& status) { done = status.ok(); }).ok());
  EXPECT_EQ(authority->compact([](const Status&) { FAIL(); }).code(), ErrorCode::kBusy);
  sent.clear();
  join(3);
  EXPECT_TRUE(sent_to<JoinAnswer>(3).empty());
  loop.run_for(310ms);
  EXPECT_TRUE(done);
  EXPECT_TRUE(sent_to<JoinAnswer>(3).empty()) << "it is not durable yet";
  loop.run_for(310ms);
  EXPECT_FALSE(sent_to<JoinAnswer>(3).empty());
  disk.set_sync_delay(1ms);
  reboot();
  EXPECT_EQ(members(), 3u);
}

TEST_F(AuthorityCompactTest, OnAFullDiskTheLogGoesOnAsItWas) {
  boot_with(2);
  commits_to(2);
  disk.set_capacity_bytes(log_bytes() + 700);
  EXPECT_FALSE(compact());
  EXPECT_TRUE(log_error.empty());
  commit(3);
  EXPECT_TRUE(log_error.empty()) << log_error;
  EXPECT_EQ(authority->status()[0].version, Version(3));
  disk.set_capacity_bytes(1 << 20);
  ASSERT_TRUE(compact());
  reboot();
  EXPECT_EQ(authority->status()[0].version, Version(3));
}

TEST_F(AuthorityCompactTest, APowerLossLeavesTheOldLogOrTheNewOneAndBothSayTheSame) {
  int happened = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    stop();
    disk = SimDisk(seed);
    newest_epoch = Epoch(0);
    boot_with(2);
    commits_to(4);
    ASSERT_TRUE(authority->compact([](const Status&) {}).ok());
    reboot();
    EXPECT_EQ(authority->status()[0].version, Version(4));
    EXPECT_EQ(authority->tally().rounds, 4u);
    EXPECT_EQ(members(), 2u);
    happened += std::ranges::any_of(durable_log().records,
                                    [](const LogRecord& record) { return std::holds_alternative<LogBase>(record); });
  }
  EXPECT_GT(happened, 0);
  EXPECT_LT(happened, 20);
}

}  // namespace
}  // namespace shoal
