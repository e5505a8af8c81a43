// A process whose device hangs beats on; it is fenced all the same. And what a device refuses is told by name.
#include <gtest/gtest.h>

#include "authority/patience.h"
#include "events/audit/audit.h"
#include "sim/swarm.h"
#include "stages/integer_executor.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

class LifeTest : public Quiet<testing::Test> {
 protected:
  static SwarmOptions options() {
    SwarmOptions options;
    options.stages = 1;
    options.replicas = 3;
    options.config = small_config(RuleId::kDiloco, 1, 100'000);
    return options;
  }
  static void hang_in_forwards(const Swarm::HostedPeer& peer) {
    SimPace hung;
    hung.forward = std::chrono::hours(1);
    peer.device->set_pace(hung);
  }
  static bool fenced(const Swarm& swarm, const Session& session) {
    return std::any_of(swarm.events().begin(), swarm.events().end(), [&](const EventRecord& e) {
      return e.event == EventKind::kSessionOver && e.about == session &&
             e.cause.find("no sign of life") != std::string::npos;
    });
  }
};

TEST_F(LifeTest, AHangInTheFirstJobEndsTheSession) {
  Swarm swarm(options());
  const auto& peer = *swarm.peers()[0];
  hang_in_forwards(peer);
  const Session session = peer.peer->session();
  swarm.run_for(kFirstJob + 30s);  // nothing of its kind was measured in this session
  std::string causes;              // it may notice by itself that it missed rounds, before it is fenced
  for (const EventRecord& e : swarm.events())
    if (e.event == EventKind::kSessionOver && e.about == session) causes += e.cause;
  EXPECT_NE(causes, "");
}

TEST_F(LifeTest, AHangInAJobWhoseLikeTookNoTimeIsFenced) {
  SwarmOptions quick = options();
  quick.pace = {.forward = 10us, .backward = 10us, .undo = 10us, .write = 10us, .round = 10us, .other = 10us};
  Swarm swarm(std::move(quick));
  swarm.run_for(5s);
  const auto& peer = *swarm.peers()[0];
  ASSERT_GT(peer.peer->report().figures.counted, 0u);
  hang_in_forwards(peer);
  const Session session = peer.peer->session();
  swarm.run_for(30s);
  EXPECT_TRUE(fenced(swarm, session));
}

TEST_F(LifeTest, AHangInARoundIsFenced) {
  Swarm swarm(options());
  swarm.run_for(5s);
  const auto& peer = *swarm.peers()[0];
  SimPace hung;
  hung.round = std::chrono::hours(1);
  peer.device->set_pace(hung);
  const Session session = peer.peer->session();
  swarm.run_for(60s);
  EXPECT_TRUE(fenced(swarm, session));
}

// What rounds make of arrays on a slow machine takes many times what the device is given for any of its jobs.
TEST_F(LifeTest, WhatRunsBesideTheDeviceHoldsUpNeitherItNorItsSession) {
  constexpr Duration kAside = 12s;
  SwarmOptions slow = options();
  slow.pace.aside = kAside;
  ASSERT_GT(kAside, slow.config.membership());
  Swarm swarm(std::move(slow));
  std::vector<Session> sessions;
  for (const auto& peer : swarm.peers()) sessions.push_back(peer->peer->session());
  swarm.run_for(100s);
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    EXPECT_FALSE(fenced(swarm, sessions[i]));
    const PeerReport report = swarm.peers()[i]->peer->report();
    EXPECT_EQ(swarm.peers()[i]->peer->session(), sessions[i]);
    EXPECT_GT(report.status.version, Version(0)) << "it prepared, and the round was committed";
    EXPECT_LT(report.status.longest_job, kAside);
  }
}

// The next session would wait for the device for ever, and say that it joins.
TEST_F(LifeTest, APeerThatWasFencedForAHungDeviceEndsByItselfAndSaysSo) {
  Swarm swarm(options());
  swarm.run_for(5s);
  const auto& peer = *swarm.peers()[0];
  hang_in_forwards(peer);
  swarm.run_for(40s);
  ASSERT_TRUE(peer.finished);
  ASSERT_TRUE(peer.error);
  EXPECT_EQ(peer.error->code, ErrorCode::kTimeout) << "exit code 75: try again";
  EXPECT_NE(peer.error->message.find("device hung for 1"), std::string::npos) << peer.error->message;
  EXPECT_TRUE(peer.peer->report().job_under_way);
  for (std::size_t i = 1; i < 3; ++i) EXPECT_FALSE(swarm.peers()[i]->finished) << "the others go on";
}

// Its session is fenced first, and its process ends in the same session.
TEST_F(LifeTest, TheAuditHasNothingAgainstAFencedPeerWhoseProcessEndsBeforeItJoinedAgain) {
  std::map<std::string, std::string> files;
  SwarmOptions told = options();
  told.evidence = &files;
  Swarm swarm(std::move(told));
  swarm.run_for(5s);
  hang_in_forwards(*swarm.peers()[0]);
  swarm.run_for(40s);
  ASSERT_TRUE(swarm.peers()[0]->finished);
  swarm.stop_launch();
  ASSERT_TRUE(swarm.run_to_end(60s));
  const AuditReport report = audit_texts(files);
  EXPECT_TRUE(report.violations.empty()) << report.violations.front();
  EXPECT_GT(report.committed, 0u);
}

// Nobody restarts a process of a lent machine, and the next one would have no other processor.
TEST_F(LifeTest, APeerWhoseProcessorHangsEndsNoProcessAndJoinsAgainWhenTheJobEnds) {
  SwarmOptions on_processor = options();
  on_processor.on_processor = true;
  Swarm swarm(std::move(on_processor));
  swarm.run_for(5s);
  const auto& peer = *swarm.peers()[0];
  const Session session = peer.peer->session();
  peer.device->set_hung(true);
  swarm.run_for(120s);
  EXPECT_TRUE(fenced(swarm, session)) << "the others do not wait for it";
  EXPECT_FALSE(peer.finished) << (peer.error ? peer.error->message : "");
  EXPECT_EQ(peer.peer->report().phase, PeerPhase::kRestarting);
  EXPECT_NE(peer.peer->report().reason.find("waiting for a job"), std::string::npos) << peer.peer->report().reason;
  peer.device->set_hung(false);
  swarm.run_for(20s);
  EXPECT_EQ(peer.peer->report().phase, PeerPhase::kServing);
  EXPECT_EQ(peer.peer->report().sessions, 2u);
}

// No session was fenced for it: the process ends in order, and must not wait for the job either.
TEST_F(LifeTest, APeerThatGoesWhileItsDeviceHangsSaysThatAJobIsUnderWay) {
  Swarm swarm(options());
  swarm.run_for(5s);
  const auto& peer = *swarm.peers()[0];
  hang_in_forwards(peer);
  swarm.run_for(1s);
  peer.peer->leave();
  peer.peer->leave();
  swarm.run_for(1s);
  ASSERT_TRUE(peer.finished);
  EXPECT_FALSE(peer.error);
  EXPECT_TRUE(peer.peer->report().job_under_way);
}

// Rounds would wait for it, and what it held would be nobody's at the end.
TEST_F(LifeTest, ASessionThatItsOwnPeerEndedBehindAHungDeviceIsOverForTheAuthorityToo) {
  Swarm swarm(options());
  swarm.run_for(5s);
  const Session session = swarm.peers()[0]->peer->session();
  swarm.peers()[0]->device->set_hung(true);
  swarm.kill_launch();
  swarm.resume_launch();  // its session is another one, so that those of its links end
  swarm.run_for(20s);
  EXPECT_TRUE(fenced(swarm, session));
}

// Frozen in the middle of a job it looks the same: the job began long ago.
TEST_F(LifeTest, APeerThatWasStoppedInTheMiddleOfAJobJoinsAgain) {
  Swarm swarm(options());
  swarm.run_for(5s);
  swarm.freeze_peer(0);
  swarm.run_for(30s);
  swarm.resume_peer(0);
  swarm.run_for(20s);
  const auto& peer = *swarm.peers()[0];
  EXPECT_FALSE(peer.finished) << (peer.error ? peer.error->message : "");
  EXPECT_EQ(peer.peer->report().phase, PeerPhase::kServing);
  EXPECT_EQ(peer.peer->report().sessions, 2u);
}

TEST_F(LifeTest, APeerThatWasFencedDoesNothingMoreInThatSession) {
  Swarm swarm(options());
  swarm.run_for(5s);
  const auto& peer = *swarm.peers()[0];
  const Session session = peer.peer->session();
  swarm.freeze_peer(0);
  swarm.run_for(20s);
  ASSERT_TRUE(fenced(swarm, session));
  swarm.resume_peer(0);
  swarm.run_for(3s);
  const TimePoint told = swarm.loop().now();
  swarm.run_for(20s);
  for (const SimEvent& e : swarm.events())
    EXPECT_FALSE(e.writer == session && e.at > told) << name_of(e.event) << " of a session that is over";
  EXPECT_NE(peer.peer->session(), session);
  EXPECT_EQ(peer.peer->report().phase, PeerPhase::kServing);
}

// Its first backward makes a value that is not finite.
class OnceNotFinite final : public IntegerExecutor {
 public:
  using IntegerExecutor::IntegerExecutor;
  Status backward_input(EntrySerial entry, FrameCoder& coder) override {
    if (!std::exchange(failed_, true)) return make_error(ErrorCode::kNonFinite, "a gradient is not finite");
    return IntegerExecutor::backward_input(entry, coder);
  }

 private:
  bool failed_ = false;
};

TEST_F(LifeTest, AGradientOfOursThatIsNotFiniteIsToldByName) {
  SwarmOptions shape = options();
  shape.factory = [](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
    return std::unique_ptr<StageExecutor>(std::make_unique<OnceNotFinite>(spec));
  };
  Swarm swarm(std::move(shape));
  swarm.run_for(5s);
  std::size_t told = 0;
  for (const EventRecord& e : swarm.events()) {
    if (e.event != EventKind::kRefused) continue;
    ++told;
    EXPECT_TRUE(e.microbatch && e.entry_name);
    EXPECT_NE(e.cause.find("gradient made here"), std::string::npos) << e.cause;
    EXPECT_NE(e.cause.find(" from "), std::string::npos) << e.cause;
  }
  EXPECT_EQ(told, 3u);
}

}  // namespace
}  // namespace shoal
