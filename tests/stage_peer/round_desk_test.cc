// The desk of one session, with a device that does everything at once: what it believes of a round, when the ledger
// lets a step of one happen, and what it says to the authority.
#include "runtime/stage_peer/round_desk.h"

#include <gtest/gtest.h>

#include <deque>

#include "runtime/stage_peer/entry_desk.h"
#include "sim/sim_loop.h"
#include "stages/integer_executor.h"
#include "sync/round_owners.h"
#include "tests/sync/sync_fixtures.h"

namespace shoal {
namespace {

class WatchedQueue final : public WorkQueue {
 public:
  void run(WorkKind kind, std::function<void()> job, std::function<void()> done) override {
    kinds.push_back(kind);
    job();
    done();
  }
  std::vector<WorkKind> kinds;
};

class RoundDeskTest : public testing::Test, private StagePeerOwner, private Links {
 protected:
  static constexpr std::uint64_t kAuthority = 1, kSelf = 2, kOther = 3;
  RoundDeskTest() { arena.serving = true; }

  static Remote remote(std::uint64_t n) { return {test::peer_of(n), test::session_of(n), PeerRole::kPeer}; }
  static RoundOpen opened(RuleId rule, std::vector<std::uint64_t> members = {kSelf}) {
    RoundOpen open;
    open.round = RoundId(1);
    open.rule = static_cast<std::uint8_t>(rule);
    open.step = StepId(traits_of(rule).every_step ? 1 : 0);
    for (const std::uint64_t n : members) open.members.push_back(test::session_of(n));
    open.owners = all_own(members.size());
    open.budget_ms = 1000;
    return open;
  }
  RoundCommit committed() const {
    RoundCommit commit;
    commit.round = RoundId(1);
    commit.version = Version(1);
    if (!reports.empty()) commit.digest = reports.back().digest;
    return commit;
  }
  std::vector<ReportKind> reported() const {
    std::vector<ReportKind> kinds;
    for (const RoundReport& report : reports) kinds.push_back(report.kind);
    return kinds;
  }
  static std::shared_ptr<const RunConfig> config() {
    auto config = std::make_shared<RunConfig>();
    config->executor.kind = ExecutorKind::kInteger;
    config->model.positions = 4;
    config->data.sequences = 1;
    config->sync.rule = RuleId::kDiloco;
    config->sync.inner_batch = test::kTargetsOfEntry;
    config->timing.lease_s = 4;
    return config;
  }

  SimLoop loop;
  WatchedQueue queue;
  std::unique_ptr<EventLog> events = make_silent_event_log();
  std::shared_ptr<IntegerExecutor> executor = std::make_shared<IntegerExecutor>(test::tiny_spec());
  const StageSession session{.config = config(),
                             .spec = test::tiny_spec(),
                             .self = test::session_of(kSelf),
                             .authority = test::peer_of(kAuthority),
                             .loop = loop,
                             .links = *this,
                             .device = queue,
                             .aside = queue,
                             .events = *events,
                             .owner = *this,
                             .executor = executor};
  Meters meters{test::kTargetsOfEntry, 64};
  ArenaState arena;
  Neighbours neighbours{*this, session.self, session.authority};
  Windows windows{windows_options(*session.config)};
  KeptTensors tensors;
  BaseBook bases{0};
  EntryDesk entries{session, neighbours, courier, ledger, tensors, bases, meters};
  Courier courier{entries, neighbours, courier_options(session)};
  EntryCredits credits = entry_credits(session);
  Ledger ledger{entries, courier, windows, credits, ledger_options(session)};
  DeviceScheduler device{queue, loop, executor, {[this] { return desk.start_next(); }}};
  WindowJobs writes{session, windows, device, arena, meters};
  RoundDesk desk{session, neighbours, ledger, windows, device, arena, writes};
  std::vector<RoundReport> reports;
  std::optional<Version> asked_for;  // since it was committed without us

 private:
  // StagePeerOwner
  void on_session_lost(const std::string& why) override { ADD_FAILURE() << why; }
  void on_version(Version) override {}
  void on_inner_step() override {}
  void on_out_of_memory(const std::string& why) override { ADD_FAILURE() << why; }
  void on_behind(Version version, const Digest&) override { asked_for = version; }
  // Links
  void learn(const PeerId&, Whereabouts) override {}
  Result<TransferId> send(const PeerId& peer, Message message, std::vector<Bytes>) override {
    EXPECT_EQ(peer, test::peer_of(kAuthority));
    reports.push_back(std::get<RoundReport>(message));
    return TransferId{0};
  }
  void drop(const PeerId&, TransferId) override {}
  void refuse(const PeerId&, TransferId) override {}
  std::optional<Remote> remote(const PeerId&) const override { return std::nullopt; }
  std::uint64_t ahead_of(const PeerId&, TransferId) const override { return 0; }
  LinkStats stats(const PeerId&) const override { return {}; }
};

TEST_F(RoundDeskTest, ARoundOfTheAuthorityAloneOpens) {
  desk.on_open(remote(kOther), opened(RuleId::kDiloco));
  EXPECT_FALSE(desk.active());
  desk.on_open(remote(kAuthority), opened(RuleId::kDiloco));
  EXPECT_TRUE(desk.active());
  EXPECT_EQ(reported(), (std::vector{ReportKind::kContributed, ReportKind::kAgreed}));
}

TEST_F(RoundDeskTest, BringsWhatIsSteppedAndSaysItsTargets) {
  const WindowSlot slot = *windows.room({});
  windows.add(slot, 7, test::kTargetsOfEntry, 0);
  windows.settle(7);
  windows.note_step(slot, 1);
  desk.on_open(remote(kAuthority), opened(RuleId::kDiloco));
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports[0].entries, std::vector<std::uint64_t>{7});
  EXPECT_EQ(reports[0].weight, test::kTargetsOfEntry);
}

TEST_F(RoundDeskTest, AContributionToAGlobalStepWaitsUntilTheStepIsAnnounced) {
  desk.on_open(remote(kAuthority), opened(RuleId::kAllreduce));
  EXPECT_TRUE(reports.empty());
  windows.close_step(StepId(1));
  device.pump();
  EXPECT_EQ(reported(), (std::vector{ReportKind::kContributed, ReportKind::kAgreed}));
}

TEST_F(RoundDeskTest, ACommitWaitsUntilNothingIsUnsettledAtTheOtherBuffer) {
  windows.close_step(StepId(1));
  desk.on_open(remote(kAuthority), opened(RuleId::kAllreduce));
  windows.add(*windows.room(StepId(2)), 7, test::kTargetsOfEntry, 0);
  windows.wrote(1);
  desk.on_commit(remote(kAuthority), committed());
  EXPECT_EQ(arena.version, Version(0));
  EXPECT_EQ(desk.anchor_for_next_job(), Version(0));
  windows.settle(7);
  device.pump();
  EXPECT_EQ(arena.version, Version(1));
  EXPECT_EQ(arena.step_done, StepId(1));
  EXPECT_FALSE(desk.active());
}

TEST_F(RoundDeskTest, AnAbandonClearsThePreparedCandidateAndTellsTheDevice) {
  desk.on_open(remote(kAuthority), opened(RuleId::kDiloco));
  ASSERT_TRUE(arena.prepared);
  RoundAbandon abandon;
  abandon.round = RoundId(1);
  desk.on_abandon(remote(kOther), abandon);
  EXPECT_TRUE(arena.prepared);
  desk.on_abandon(remote(kAuthority), abandon);
  EXPECT_FALSE(arena.prepared);
  EXPECT_EQ(queue.kinds.back(), WorkKind::kAbandon);
  EXPECT_TRUE(desk.quiet());
}

TEST_F(RoundDeskTest, WhatWasReportedOutlivesTheSession) {
  desk.on_open(remote(kAuthority), opened(RuleId::kDiloco));
  ASSERT_TRUE(arena.prepared);
  device.stop();
  desk.cancel();
  EXPECT_FALSE(desk.active());
  EXPECT_TRUE(arena.prepared) << "the authority may have committed it";
}

TEST_F(RoundDeskTest, ARoundOfAGlobalStepHoldsTheParametersUntilItIsOver) {
  EXPECT_FALSE(desk.holds_parameters());
  windows.close_step(StepId(1));
  desk.on_open(remote(kAuthority), opened(RuleId::kAllreduce));
  EXPECT_TRUE(desk.holds_parameters());
  desk.on_commit(remote(kAuthority), committed());
  EXPECT_EQ(arena.version, Version(1));
  EXPECT_FALSE(desk.holds_parameters());
}

TEST_F(RoundDeskTest, ARoundOfOwnStepsLeavesTheParametersToThem) {
  desk.on_open(remote(kAuthority), opened(RuleId::kDiloco));
  EXPECT_TRUE(desk.active());
  EXPECT_FALSE(desk.holds_parameters());
}

class SlowAsideTest : public RoundDeskTest {
 protected:
  // Keeps what it is given.
  class HeldQueue final : public WorkQueue {
   public:
    void run(WorkKind, std::function<void()> job, std::function<void()> done) override {
      jobs.emplace_back(std::move(job), std::move(done));
    }
    void finish() {
      auto [job, done] = std::move(jobs.front());
      jobs.pop_front();
      job();
      done();
    }
    std::deque<std::pair<std::function<void()>, std::function<void()>>> jobs;
  };
  HeldQueue held;
  StageSession apart = [this] {
    return StageSession{.config = session.config,
                        .spec = session.spec,
                        .self = session.self,
                        .authority = session.authority,
                        .loop = loop,
                        .links = session.links,
                        .device = queue,
                        .aside = held,
                        .events = *events,
                        .owner = session.owner,
                        .executor = executor};
  }();
  DeviceScheduler other{queue, loop, executor, {[this] { return slow.start_next(); }}};
  RoundDesk slow{apart, neighbours, ledger, windows, other, arena, writes};
};

TEST_F(SlowAsideTest, TheDeviceIsFreeMeanwhileAndHearsOfAnAbandonBehindIt) {
  slow.on_open(remote(kAuthority), opened(RuleId::kDiloco));
  ASSERT_EQ(held.jobs.size(), 1u) << "what it brings";
  EXPECT_EQ(queue.kinds, std::vector{WorkKind::kSnapshot});
  EXPECT_TRUE(other.idle());
  EXPECT_FALSE(slow.quiet());
  held.finish();
  ASSERT_EQ(held.jobs.size(), 1u) << "the candidate";
  EXPECT_EQ(reported(), std::vector{ReportKind::kContributed});
  RoundAbandon abandon;
  abandon.round = RoundId(1);
  slow.on_abandon(remote(kAuthority), abandon);
  EXPECT_EQ(queue.kinds.back(), WorkKind::kSnapshot) << "the arrays are in use";
  held.finish();
  EXPECT_EQ(queue.kinds.back(), WorkKind::kAbandon);
  EXPECT_FALSE(arena.prepared) << "nobody was told of that candidate";
  EXPECT_EQ(reported(), std::vector{ReportKind::kContributed});
  EXPECT_TRUE(slow.quiet());
}

// The part is too short, so its sender is blamed when it is looked at.
TEST_F(RoundDeskTest, FramesOfAPartFromALinkThatWentDownAreForgotten) {
  desk.on_open(remote(kAuthority), opened(RuleId::kDiloco, {kSelf, kOther}));
  RoundPart part;
  part.round = RoundId(1);
  Result<std::vector<Bytes>> frames = std::vector<Bytes>{Bytes::copy_of("x")};
  desk.on_part(remote(kOther), part, 5);
  desk.forget_link(test::peer_of(kOther));
  desk.on_frames(remote(kOther), 5, frames);
  EXPECT_EQ(reported(), std::vector{ReportKind::kContributed});
  desk.on_part(remote(kOther), part, 6);
  desk.on_frames(remote(kOther), 6, frames);
  ASSERT_EQ(reported(), (std::vector{ReportKind::kContributed, ReportKind::kFailed}));
  EXPECT_EQ(reports[1].malformed, test::session_of(kOther));
}

TEST_F(RoundDeskTest, ARoundThatWasCommittedWithoutUsLeavesUsBehindOnceWeServe) {
  arena.serving = false;
  desk.on_commit(remote(kAuthority), committed());
  EXPECT_EQ(desk.behind(), std::nullopt) << "the state that is on its way may be as new";
  arena.serving = true;
  desk.on_commit(remote(kAuthority), committed());
  EXPECT_EQ(desk.behind(), Version(1));
  EXPECT_EQ(asked_for, Version(1));
  EXPECT_FALSE(desk.quiet());
}

}  // namespace
}  // namespace shoal
