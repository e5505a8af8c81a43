// What an authority makes of its log after a restart, and of a disk that fails.
#include "tests/authority/authority_rig.h"

namespace shoal {
namespace {

using test::AuthorityTest;
using test::kLogPath;
using test::session_of;

// ---- the log ----
TEST_F(AuthorityTest, ComesBackFromItsLogAtEveryRecordBoundaryAndFromTornTails) {
  boot_with(2);
  commit_first(2);
  authority->on_message(remote(2), Leave{false});
  settle();
  beat(1, 1, 300);  // opens round 2, never committed
  stop();
  const std::vector<std::uint8_t> whole = *disk.durable_content(kLogPath);
  const LogContent content = parse_log(whole).value();
  ASSERT_EQ(content.records.size(), 9u);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const LogContent prefix = parse_log(ByteView(whole).first(size)).value();
    if (size != prefix.valid_bytes && size % 7 != 0) continue;  // every boundary, and a torn tail here and there
    disk.put(kLogPath, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    commits.clear();
    over.clear();
    newest_epoch = Epoch(0);
    sent.clear();
    boot();
    std::size_t joined = 0, left = 0, committed = 0, opened = 0;
    std::set<Session> seen;
    for (const LogRecord& record : prefix.records) {
      if (const auto* member = std::get_if<LogMember>(&record))
        joined += seen.insert(member->member.session).second ? 1 : 0;
      left += std::holds_alternative<LogOver>(record) ? 1 : 0;
      committed += std::holds_alternative<LogCommit>(record) ? 1 : 0;
      opened += std::holds_alternative<LogOpen>(record) ? 1 : 0;
    }
    EXPECT_EQ(members(), joined - left) << size;
    EXPECT_EQ(commits.size(), committed);
    EXPECT_EQ(over.size(), left);
    EXPECT_EQ(authority->members().stages[0].version, Version(committed));
    if (joined > 0) {
      for (std::uint64_t n = 1; n <= joined - left; ++n) beat(n, committed, 100);
      for (std::uint64_t n = 1; n <= joined - left; ++n) beat(n, committed, 100);
      const auto opens = sent_to<RoundOpen>(1);
      ASSERT_FALSE(opens.empty()) << size;
      EXPECT_EQ(opens[0].round, RoundId(opened + 1)) << "ids of rounds are never reused";
    }
    stop();
  }
}

TEST_F(AuthorityTest, ARoundThatWasOpenWhenItDiedIsAbandonedAndTriedAgain) {
  boot_with(2);
  contribute_all(2);
  reboot();
  authority->on_link_up(remote(1));
  ASSERT_EQ(sent_to<RoundAbandon>(1).size(), 1u);
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 1, 7, 3, 30);
  settle();
  EXPECT_TRUE(commits.empty()) << "its contributions are not known any more";
  for (std::uint64_t n = 1; n <= 2; ++n) beat(n, 0, 100);
  EXPECT_EQ(sent_to<RoundOpen>(1).back().round, RoundId(2));
}

TEST_F(AuthorityTest, ACommitThatWasDurableIsToldAfterTheRestart) {
  boot();
  join_and_serve(1);
  beat(1, 0, 300);
  contribute(1, 1, {1});
  agree(1, 1, 7, 1, 10);
  settle();
  commits.clear();
  reboot();
  EXPECT_EQ(commits.size(), 1u) << "the trainer hears of it again";
  authority->on_link_up(remote(1));
  EXPECT_EQ(sent_to<RoundCommit>(1).size(), 1u);
}

// Also to whoever was away when it was told: its links are refused, and what it asks for is answered by name.
TEST_F(AuthorityTest, ASessionThatIsOverStaysSoBehindARestart) {
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_serve(n);
  authority->on_message(remote(3), Leave{false});
  keep_alive(1, 13s);
  ASSERT_EQ(over.size(), 2u);
  fenced.clear();
  over.clear();
  reboot();
  EXPECT_EQ(fenced, std::set<Session>{session_of(2)}) << "who left is refused nothing";
  EXPECT_EQ(over.size(), 2u) << "the trainer hears of it again";
  for (std::uint64_t n = 2; n <= 3; ++n) {
    EXPECT_TRUE(authority->knows(session_of(n)));
    join(n);
    EXPECT_TRUE(sent_to<JoinAnswer>(n).empty());
  }
  EXPECT_EQ(members(), 1u);
  EXPECT_FALSE(sent_to<Fenced>(2).empty());
  EXPECT_FALSE(sent_to<Goodbye>(3).empty());
}

TEST_F(AuthorityTest, AFailingDiskStopsAllDecisions) {
  boot();
  join_and_serve(1);
  disk.set_failing(true);
  join(2);
  EXPECT_FALSE(log_error.empty());
  EXPECT_TRUE(sent_to<JoinAnswer>(2).empty());
  EXPECT_EQ(members(), 1u);
  disk.set_failing(false);
  join(3);
  EXPECT_TRUE(sent_to<JoinAnswer>(3).empty());
}

}  // namespace
}  // namespace shoal
