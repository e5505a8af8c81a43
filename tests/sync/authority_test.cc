#include "sync/authority.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/sign.h"
#include "sim/sim_loop.h"
#include "sim/sim_storage.h"
#include "sync/authority_log.h"
#include "sync/membership.h"
#include "tests/sync/sync_fixtures.h"

namespace shoal {
namespace {

using test::peer_of;
using test::session_of;

constexpr const char* kLogPath = "authority.log";

Digest digest_number(std::uint8_t n) {
  Digest digest;
  digest.bytes[0] = n;
  return digest;
}

class AuthorityTest : public testing::Test, public AuthorityPort {
 protected:
  AuthorityTest() : key(KeyPair::from_seed({9, 9, 9})) {
    options.run.bytes = key.id().bytes;
    options.round_targets = 100;
  }
  ~AuthorityTest() override { stop(); }

  void boot() {
    storage = std::make_unique<SimStorage>(loop, disk);
    const Result<Bytes> history = storage->read(kLogPath, 64u << 20);
    const Bytes bytes = history.ok() ? *history : Bytes();
    const std::size_t valid = authority_log_valid_bytes(bytes).value();
    if (history.ok()) {
      ASSERT_TRUE(storage->truncate(kLogPath, valid).ok());
    }
    auto file = storage->open_append(kLogPath);
    ASSERT_TRUE(file.ok());
    auto opened = Authority::open(options, *this, loop, std::move(*file), bytes.view().first(valid));
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    authority = std::move(*opened);
    authority->start();
    settle();
  }
  void stop() {
    authority.reset();
    if (storage) storage->die();
    storage.reset();
  }
  void reboot() {
    stop();
    disk.crash();
    sent.clear();
    boot();
  }
  void settle() { loop.run_for(20ms); }

  // ---- AuthorityPort ----
  void send(const PeerId& peer, Message message) override {
    // Nothing about a decision leaves before its record is durable.
    if (const auto* open = std::get_if<RoundOpen>(&message)) check_durable_open(*open);
    if (const auto* commit = std::get_if<RoundCommit>(&message)) check_durable_commit(*commit);
    sent.emplace_back(peer, std::move(message));
  }
  std::vector<std::uint8_t> sign(ByteView body) override {
    const Signature signature = key.sign(body);
    return {signature.begin(), signature.end()};
  }
  void fence(const Session& session) override { fenced.insert(session); }
  void on_members(const MemberList& list, const Members& signed_list) override {
    EXPECT_TRUE(open_member_list(signed_list, options.run).ok());
    EXPECT_GE(list.epoch, newest_epoch);
    newest_epoch = list.epoch;
  }
  void on_round_commit(const RoundCommit& commit) override { commits.push_back(commit); }
  void on_round_abandoned(const RoundAbandon& abandon) override { abandons.push_back(abandon); }
  void on_session_over(const Session& session, StageId, const std::string& why) override {
    over.emplace_back(session, why);
  }
  void on_log_failure(const Error& error) override { log_error = error.message; }
  void event(const std::string& name, const std::vector<std::pair<std::string, std::string>>&) override {
    events.push_back(name);
  }

  LogContent durable_log() {
    const auto bytes = disk.durable_content(kLogPath);
    return bytes ? parse_log(*bytes).value() : LogContent{};
  }
  void check_durable_open(const RoundOpen& open) {
    for (const LogRecord& record : durable_log().records)
      if (const auto* logged = std::get_if<LogOpen>(&record);
          logged && logged->open.round == open.round && logged->open.stage == open.stage)
        return;
    ADD_FAILURE() << "RoundOpen " << open.round << " left before it was durable";
  }
  void check_durable_commit(const RoundCommit& commit) {
    for (const LogRecord& record : durable_log().records)
      if (const auto* logged = std::get_if<LogCommit>(&record); logged && logged->commit.round == commit.round) return;
    ADD_FAILURE() << "RoundCommit " << commit.round << " left before it was durable";
  }

  // ---- peers ----
  static Remote remote(std::uint64_t n) { return {peer_of(n), session_of(n), PeerRole::kPeer}; }
  void join(std::uint64_t n, JoinRequest request = {}) {
    authority->on_link_up(remote(n));
    authority->on_message(remote(n), request);
    settle();
  }
  Beat beat_of(std::uint64_t version = 0, std::uint64_t settled = 0, StageId stage = StageId(0)) {
    Beat beat;
    beat.stage = stage;
    beat.version = Version(version);
    beat.serving = true;
    beat.settled_targets = settled;
    beat.progress = ++progress;
    return beat;
  }
  void beat(std::uint64_t n, std::uint64_t version = 0, std::uint64_t settled = 0, StageId stage = StageId(0)) {
    authority->on_message(remote(n), beat_of(version, settled, stage));
    settle();
  }
  void join_and_serve(std::uint64_t n) {
    join(n);
    beat(n);
  }
  void contribute(std::uint64_t n, std::uint64_t round, std::vector<std::uint64_t> entries) {
    RoundReport report;
    report.round = RoundId(round);
    report.weight = n;
    report.tag = 10 * n;
    report.entries = std::move(entries);
    authority->on_message(remote(n), report);
  }
  void agree(std::uint64_t n, std::uint64_t round, std::uint8_t digest, std::uint64_t weight, CountTag tag) {
    RoundReport report;
    report.round = RoundId(round);
    report.ready = true;
    report.digest = digest_number(digest);
    report.weight = weight;
    report.tag = tag;
    authority->on_message(remote(n), report);
  }
  void fail_round(std::uint64_t n, std::uint64_t round, std::optional<Session> silent, const std::string& reason) {
    RoundReport report;
    report.round = RoundId(round);
    report.silent = silent;
    report.reason = reason;
    authority->on_message(remote(n), report);
  }
  template <class T>
  std::vector<T> sent_to(std::uint64_t n) const {
    std::vector<T> messages;
    for (const auto& [peer, message] : sent)
      if (const T* of = std::get_if<T>(&message); of && peer == peer_of(n)) messages.push_back(*of);
    return messages;
  }
  std::size_t listed(StageId stage = StageId(0)) const {
    return authority->members().stages[stage.value].members.size();
  }
  // Members 1..n serve, beat until `until`, and have enough settled to open a round.
  void keep_alive(std::size_t n, Duration time, std::uint64_t version = 0) {
    for (const TimePoint end = loop.now() + time; loop.now() < end;) {
      for (std::uint64_t i = 1; i <= n; ++i) beat(i, version);
      loop.run_for(980ms - 20ms * static_cast<int>(n));
    }
  }

  SimLoop loop;
  SimDisk disk;
  KeyPair key;
  AuthorityOptions options;
  std::unique_ptr<SimStorage> storage;
  std::unique_ptr<Authority> authority;
  std::vector<std::pair<PeerId, Message>> sent;
  std::set<Session> fenced;
  std::vector<RoundCommit> commits;
  std::vector<RoundAbandon> abandons;
  std::vector<std::pair<Session, std::string>> over;
  std::vector<std::string> events;
  std::string log_error;
  Epoch newest_epoch;
  std::uint64_t progress = 0;
};

// ---- joining ----
TEST_F(AuthorityTest, AJoinerIsListedFirstAndAnsweredThen) {
  boot();
  join(1);
  ASSERT_EQ(sent_to<JoinAnswer>(1).size(), 1u);
  EXPECT_TRUE(sent_to<JoinAnswer>(1)[0].accepted);
  EXPECT_TRUE(sent_to<JoinAnswer>(1)[0].initialise) << "the stage never secured a round";
  ASSERT_EQ(listed(), 1u);
  EXPECT_FALSE(authority->members().stages[0].members[0].serving);
  beat(1);
  EXPECT_TRUE(authority->members().stages[0].members[0].serving);
}

TEST_F(AuthorityTest, JoinersSpreadOverTheStages) {
  options.stages = 3;
  boot();
  for (std::uint64_t n = 1; n <= 6; ++n) join(n);
  for (std::uint16_t k = 0; k < 3; ++k) EXPECT_EQ(listed(StageId(k)), 2u);
}

TEST_F(AuthorityTest, ANewerSessionOfAPeerReplacesItsOlder) {
  boot();
  join_and_serve(1);
  Remote again = remote(1);
  again.session.incarnation = 5;
  authority->on_message(again, JoinRequest{});
  settle();
  ASSERT_EQ(listed(), 1u);
  EXPECT_EQ(authority->members().stages[0].members[0].session, again.session);
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(1));
  EXPECT_TRUE(fenced.count(session_of(1)));
}

TEST_F(AuthorityTest, AStageThatSecuredARoundIsNeverInitialisedAgain) {
  boot();
  join_and_serve(1);
  beat(1, 0, 100);
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
  EXPECT_EQ(listed(), 1u);
  beat(2);
  EXPECT_EQ(sent_to<Fenced>(2).size(), 2u) << "it is told again when it wakes up";
  authority->on_message(remote(2), JoinRequest{});
  settle();
  EXPECT_EQ(listed(), 1u) << "that session is over for good";
}

TEST_F(AuthorityTest, ABeatWithQueuedWorkAndNoProgressIsNoLife) {
  boot();
  join_and_serve(1);
  join_and_serve(2);
  Beat hung = beat_of();
  hung.queue_ms = 500;
  Beat idle = beat_of();
  for (int second = 0; second < 12; ++second) {
    authority->on_message(remote(1), hung);
    authority->on_message(remote(2), idle);
    loop.run_for(1s);
  }
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].first, session_of(1));
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
  EXPECT_EQ(listed(), 1u);
  loop.run_for(9s);
  EXPECT_TRUE(over.empty()) << "the authority was away, not they";
  loop.run_for(2s);
  EXPECT_EQ(over.size(), 1u);
}

// ---- rounds ----
TEST_F(AuthorityTest, ARoundOfAllMembersIsCommittedAtOnceAndNamesTheirEntries) {
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_serve(n);
  beat(1, 0, 60);
  EXPECT_TRUE(sent_to<RoundOpen>(1).empty());
  beat(2, 0, 40);
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
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_serve(n);
  beat(1, 0, 100);
  for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, 1, {n});
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
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_serve(n);
  beat(1, 0, 100);
  contribute(1, 1, {1});
  contribute(2, 1, {2});
  for (std::uint64_t n = 1; n <= 3; ++n) agree(n, 1, 7, 6, 60);
  keep_alive(3, 20s);
  EXPECT_TRUE(commits.empty()) << "the entries of member 3 could not be named";
  keep_alive(3, 14s);
  EXPECT_TRUE(commits.empty());
  ASSERT_GE(abandons.size(), 1u);
}

TEST_F(AuthorityTest, HalfOfTheMembersIsNoQuorum) {
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join_and_serve(n);
  beat(1, 0, 100);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, {n});
  agree(1, 1, 7, 3, 30);
  keep_alive(2, 20s);
  EXPECT_TRUE(commits.empty());
}

TEST_F(AuthorityTest, SplitVotesAbandonTheRoundAndTheNextOneIsTried) {
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join_and_serve(n);
  beat(1, 0, 100);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, {n});
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
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_serve(n);
  beat(1, 0, 100);
  for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, 1, {n});
  agree(1, 1, 8, 6, 60);
  agree(2, 1, 7, 6, 60);
  agree(3, 1, 7, 6, 60);
  settle();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].digest, digest_number(7));
}

TEST_F(AuthorityTest, ASumThatIsNotThatOfTheContributionsIsNotCommitted) {
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join_and_serve(n);
  beat(1, 0, 100);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, {n});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 1, 7, 3, 31);
  settle();
  EXPECT_TRUE(commits.empty());
  EXPECT_EQ(abandons.size(), 1u);
}

TEST_F(AuthorityTest, AMemberThatIsFencedInARoundIsLeftOutOfTheNextAttempt) {
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join_and_serve(n);
  beat(1, 0, 100);
  contribute(1, 1, {1});
  for (int second = 0; second < 11; ++second) {
    beat(1, 0, 100);
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
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_serve(n);
  loop.run_for(8s);
  beat(1, 0, 100);
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

TEST_F(AuthorityTest, AFailedContributionEndsTheAttemptAndASilentMemberIsLeftOutAfterTwo) {
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_serve(n);
  beat(1, 0, 100);
  for (std::uint64_t round = 1; round <= 2; ++round) {
    const auto opened = sent_to<RoundOpen>(1);
    ASSERT_EQ(opened.back().round, RoundId(round));
    EXPECT_EQ(opened.back().members.size(), 3u);
    fail_round(1, round, session_of(2), "a part did not come within the budget");
    settle();
    ASSERT_EQ(abandons.size(), round);
    for (std::uint64_t n = 1; n <= 3; ++n) beat(n, 0, 100);
    loop.run_for(300ms);
  }
  EXPECT_EQ(sent_to<RoundOpen>(1).back().members, (std::vector<Session>{session_of(1), session_of(3)}));
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
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join_and_serve(n);
  beat(1, 0, 100);
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
  boot();
  for (std::uint64_t n = 1; n <= 3; ++n) join_and_serve(n);
  beat(1, 0, 100);
  for (std::uint64_t n = 1; n <= 3; ++n) contribute(n, 1, {n});
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
  beat(1, 0, 100);
  contribute(1, 1, {1});
  agree(1, 1, 7, 1, 10);
  settle();
  join(2);
  beat(1, 1, 100);
  EXPECT_EQ(sent_to<RoundOpen>(1).size(), 1u);
  loop.run_for(options.join_hold);
  beat(1, 1, 100);
  EXPECT_EQ(sent_to<RoundOpen>(1).size(), 2u);
}

// ---- steps ----
Step step_number(std::uint64_t n) {
  Step step;
  step.step = StepId(n);
  step.targets = 32;
  step.run_targets = 32 * n;
  return step;
}

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
  agreed.ready = true;
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
  beat(1, 1, 100);
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 2u);
  EXPECT_EQ(sent_to<RoundOpen>(1)[1].rule, static_cast<std::uint8_t>(RuleId::kDiloco));
}

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
  EXPECT_EQ(listed(), 1u);
  ASSERT_EQ(over.size(), 1u);
  authority->on_message(remote(1), Leave{true});
  EXPECT_EQ(sent_to<Goodbye>(1).size(), 2u) << "a lost Goodbye is said again";
  EXPECT_TRUE(sent_to<Fenced>(1).empty());
}

TEST_F(AuthorityTest, ALeaverWithNothingToSecureGoesAtOnce) {
  boot();
  join_and_serve(1);
  authority->on_message(remote(1), Leave{false});
  settle();
  EXPECT_EQ(sent_to<Goodbye>(1).size(), 1u);
  EXPECT_EQ(listed(), 0u);
}

TEST_F(AuthorityTest, FinishMakesALastRoundAndThenTakesNobodyIn) {
  boot();
  join_and_serve(1);
  bool done = false;
  authority->finish([&] { done = true; });
  settle();
  ASSERT_EQ(sent_to<RoundOpen>(1).size(), 1u);
  EXPECT_TRUE(sent_to<RoundOpen>(1)[0].last);
  EXPECT_FALSE(done);
  join(2);
  EXPECT_FALSE(sent_to<JoinAnswer>(2)[0].accepted);
  contribute(1, 1, {});
  agree(1, 1, 7, 1, 10);
  settle();
  EXPECT_TRUE(done);
  authority->end("all tokens are trained");
  EXPECT_EQ(sent_to<End>(1).size(), 1u);
}

TEST_F(AuthorityTest, FinishDoesNotWaitForAStageThatNobodyServes) {
  options.stages = 2;
  boot();
  bool done = false;
  authority->finish([&] { done = true; });
  settle();
  EXPECT_TRUE(done);
}

// ---- the log ----
TEST_F(AuthorityTest, ComesBackFromItsLogAtEveryRecordBoundaryAndFromTornTails) {
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join_and_serve(n);
  beat(1, 0, 100);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, {n});
  for (std::uint64_t n = 1; n <= 2; ++n) agree(n, 1, 7, 3, 30);
  settle();
  authority->on_message(remote(2), Leave{false});
  settle();
  beat(1, 1, 100);  // opens round 2, never committed
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
    EXPECT_EQ(listed(), joined - left) << size;
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
  boot();
  for (std::uint64_t n = 1; n <= 2; ++n) join_and_serve(n);
  beat(1, 0, 100);
  for (std::uint64_t n = 1; n <= 2; ++n) contribute(n, 1, {n});
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
  beat(1, 0, 100);
  contribute(1, 1, {1});
  agree(1, 1, 7, 1, 10);
  settle();
  commits.clear();
  reboot();
  EXPECT_EQ(commits.size(), 1u) << "the trainer hears of it again";
  authority->on_link_up(remote(1));
  EXPECT_EQ(sent_to<RoundCommit>(1).size(), 1u);
}

TEST_F(AuthorityTest, AFailingDiskStopsAllDecisions) {
  boot();
  join_and_serve(1);
  disk.set_failing(true);
  join(2);
  EXPECT_FALSE(log_error.empty());
  EXPECT_TRUE(sent_to<JoinAnswer>(2).empty());
  EXPECT_EQ(listed(), 1u);
  disk.set_failing(false);
  join(3);
  EXPECT_TRUE(sent_to<JoinAnswer>(3).empty());
}

TEST_F(AuthorityTest, RefusesTheLogOfAnotherRun) {
  boot();
  stop();
  const std::vector<std::uint8_t> bytes = *disk.durable_content(kLogPath);
  options.run.bytes[0] ^= 1;
  storage = std::make_unique<SimStorage>(loop, disk);
  auto file = storage->open_append(kLogPath);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(Authority::open(options, *this, loop, std::move(*file), bytes).code(), ErrorCode::kCorrupt);
}

TEST_F(AuthorityTest, TakesNoReportsFromStrangers) {
  boot();
  join_and_serve(1);
  beat(1, 0, 100);
  contribute(1, 1, {1});
  agree(2, 1, 9, 1, 10);
  EXPECT_TRUE(commits.empty());
  authority->on_message({peer_of(3), session_of(3), PeerRole::kPeer}, Message(step_number(1)));
  settle();
  EXPECT_TRUE(sent_to<Step>(1).empty()) << "only the trainer's process says that a step is complete";
}

}  // namespace
}  // namespace shoal
