// A peer that was away at the end of a run hears of it: from a launching process that waits a while, from the
// directory, from one that is started again for it; and nobody but the run's key ends a run.
#include <gtest/gtest.h>

#include <algorithm>

#include "dht/record.h"
#include "sim/checkers.h"
#include "tests/quiet_log.h"
#include "tests/sim/stranger.h"

namespace shoal {
namespace {

class EndTest : public Quiet<testing::Test> {
 protected:
  static SwarmOptions options(std::uint64_t microbatches) {
    SwarmOptions options;
    options.stages = 2;
    options.config = small_config(RuleId::kDiloco, options.stages, microbatches);
    return options;
  }
  static bool told(const Swarm& swarm, const std::string& part) {
    return std::any_of(swarm.notices().begin(), swarm.notices().end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }
  static bool run_until_told(Swarm& swarm, const std::string& part) {
    return swarm.loop().run_until_true([&] { return told(swarm, part); }, swarm.loop().now() + 300s);
  }
};

TEST_F(EndTest, AMemberThatStoodStillDuringTheValidationIsWaitedForAndEndsInOrder) {
  Swarm swarm(options(64));
  ASSERT_TRUE(run_until_told(swarm, "validating"));
  swarm.freeze_peer(3);
  ASSERT_TRUE(run_until_told(swarm, "waiting up to 10 s for members that have not heard the end"));
  EXPECT_FALSE(swarm.finished());
  swarm.resume_peer(3);
  ASSERT_TRUE(swarm.run_to_end(10s));
  EXPECT_TRUE(swarm.peers()[3]->finished);
  EXPECT_FALSE(swarm.peers()[3]->error);
}

TEST_F(EndTest, AMemberThatDiedBeforeTheEndIsWaitedForNoLongerThanItMayBeSilent) {
  Swarm swarm(options(64));
  ASSERT_TRUE(run_until_told(swarm, "validating"));
  swarm.kill_peer(3);
  const TimePoint killed = swarm.loop().now();
  ASSERT_TRUE(swarm.run_to_end(60s));
  EXPECT_LT(swarm.loop().now() - killed, 13s);
}

TEST_F(EndTest, NobodyIsWaitedForWhenAllHaveHeardTheEnd) {
  Swarm swarm(options(64));
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_FALSE(told(swarm, "waiting up to"));
}

TEST_F(EndTest, ARunThatIsResumedAfterItsEndTellsWhoWasAwayAndSaysThatItHasEnded) {
  Swarm swarm(options(64));
  ASSERT_TRUE(run_until_told(swarm, "validating"));
  const std::string away = swarm.peers()[3]->address;
  const auto cut = [&](bool on) {
    swarm.network().partition(kSimLaunchAddress, away, on);
    for (std::size_t i = 0; i < 3; ++i) swarm.network().partition(swarm.peers()[i]->address, away, on);
  };
  cut(true);
  ASSERT_TRUE(swarm.loop().run_until_true([&] { return swarm.finished(); }, swarm.loop().now() + 60s));
  swarm.kill_launch();
  swarm.run_for(60s);
  cut(false);
  swarm.run_for(20s);
  EXPECT_FALSE(swarm.peers()[3]->finished) << "there is nobody who could tell it";
  swarm.resume_launch();
  ASSERT_TRUE(swarm.run_to_end(30s));
  EXPECT_TRUE(told(swarm, "this run has ended already: peers that were away are told for 10 s"));
  EXPECT_TRUE(swarm.peers()[3]->finished);
  EXPECT_FALSE(swarm.peers()[3]->error);
}

// Answers with the run's record alone, once it is set.
class EndedDirectory final : public PeerDirectory {
 public:
  std::optional<RunRecord> record;

  void announce(std::string, std::string) override {}
  void withdraw(const std::string&) override {}
  void look_up_stage(StageId, Duration, std::function<void(std::vector<PeerRecord>)>) override {}
  void look_up_run(Duration, std::function<void(Result<RunRecord>)> done) override {
    if (record) return done(*record);
    done(make_error(ErrorCode::kTimeout, "no record"));
  }
  void look_up_standing(std::uint16_t, Duration, std::function<void(Result<StandingRecord>)>) override {}
  void offer(const std::vector<std::string>&) override {}
  std::vector<std::string> known(std::size_t) const override { return {}; }
  bool alive() const override { return true; }
};

TEST_F(EndTest, WhoLostTheLaunchingProcessLearnsTheEndFromTheDirectory) {
  EndedDirectory directory;
  SwarmOptions shape = options(100'000);
  shape.directory = &directory;
  Swarm swarm(std::move(shape));
  swarm.run_for(5s);
  swarm.kill_launch();
  swarm.run_for(20s);
  for (const auto& peer : swarm.peers()) EXPECT_FALSE(peer->finished);
  directory.record.emplace();
  directory.record->run = RunId{swarm.run_key().id().bytes};
  directory.record->ended = "all tokens are committed";
  swarm.run_for(30s);
  for (const auto& peer : swarm.peers()) {
    EXPECT_TRUE(peer->finished);
    EXPECT_FALSE(peer->error);
  }
}

// A peer passes the word on, and whoever has it may: the signature decides.
TEST_F(EndTest, AStrangersWordEndsNothingAndTheSignedOneEndsAPeer) {
  Swarm swarm(options(100'000));
  swarm.run_for(5s);
  const auto& peer = *swarm.peers()[0];
  const RunId run{swarm.run_key().id().bytes};
  Stranger stranger(swarm, run);
  stranger.say(peer.key.id(), peer.address, End{"because I say so"});
  const KeyPair other = KeyPair::from_seed({9});
  const Signature forged = other.sign(end_text(run, "over"));
  stranger.say(peer.key.id(), peer.address, End{"over", {forged.begin(), forged.end()}});
  swarm.run_for(5s);
  EXPECT_FALSE(peer.finished);
  EXPECT_EQ(peer.peer->report().phase, PeerPhase::kServing);
  const Signature right = swarm.run_key().sign(end_text(run, "over"));
  stranger.say(peer.key.id(), peer.address, End{"over", {right.begin(), right.end()}});
  swarm.run_for(1s);
  EXPECT_TRUE(peer.finished);
  EXPECT_FALSE(peer.error);
}

}  // namespace
}  // namespace shoal
