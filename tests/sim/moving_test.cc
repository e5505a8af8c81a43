// Peers that move to where the run is weakest: in order, whatever becomes of them on the way.
#include <gtest/gtest.h>

#include "sim/checkers.h"
#include "sim/swarm.h"
#include "stages/integer_executor.h"
#include "tests/quiet_log.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

constexpr SimPace kFast{.forward = 60ms, .backward = 120ms}, kSlow{.forward = 240ms, .backward = 480ms};

class MovingTest : public Quiet<testing::TestWithParam<RuleId>> {
 protected:
  static SwarmOptions options(std::uint64_t seed = 1) {
    SwarmOptions options;
    options.seed = seed;
    options.stages = 3;
    options.replicas = 3;
    options.config = small_config(GetParam(), 3, 10'000'000);
    options.config.pipeline.in_flight = 36;
    options.config.sync.microbatches_per_step = 24;
    options.pace = kFast;
    return options;
  }
  static std::vector<std::size_t> of_stage(const Swarm& swarm, std::uint16_t stage) {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < swarm.peers().size(); ++i)
      if (swarm.peers()[i]->alive && swarm.peers()[i]->peer->report().stage == StageId(stage)) result.push_back(i);
    return result;
  }
  static bool run_until(Swarm& swarm, Duration limit, const std::function<bool()>& holds) {
    return swarm.loop().run_until_true(holds, swarm.loop().now() + limit);
  }
  static std::size_t asked(const Swarm& swarm) {
    return static_cast<std::size_t>(std::count_if(swarm.events().begin(), swarm.events().end(), [](const SimEvent& e) {
      return e.event == EventKind::kMember && e.state == "asked to move";
    }));
  }
  static std::optional<std::size_t> mover(const Swarm& swarm) {
    for (std::size_t i = 0; i < swarm.peers().size(); ++i)
      for (const std::string& line : swarm.peers()[i]->notices)
        if (line.find("moving to stage") != std::string::npos) return i;
    return std::nullopt;
  }
  // Stage 2 becomes four times slower.
  static void slow_down(Swarm& swarm) {
    for (const std::size_t peer : of_stage(swarm, 2)) swarm.peers()[peer]->device->set_pace(kSlow);
  }
  static double commits_per_second(Swarm& swarm, Duration time) {
    const std::uint64_t before = swarm.launch()->book().committed();
    swarm.run_for(time);
    return static_cast<double>(swarm.launch()->book().committed() - before) / seconds_of(time);
  }
  static void end_well(Swarm& swarm) {
    EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
    swarm.finish_launch("enough");
    ASSERT_TRUE(swarm.run_to_end(300s));
    EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  }
};

TEST_P(MovingTest, NobodyMovesInASwarmInBalance) {
  Swarm swarm(options());
  swarm.run_for(120s);
  EXPECT_EQ(asked(swarm), 0u);
  EXPECT_GT(swarm.launch()->book().committed(), 100u);
}

TEST_P(MovingTest, PeersMoveToAStageThatBecameSlowAndTheRateComesBack) {
  Swarm swarm(options());
  swarm.run_for(30s);
  const double healthy = commits_per_second(swarm, 30s);
  slow_down(swarm);
  ASSERT_TRUE(run_until(swarm, 30s, [&] { return mover(swarm).has_value(); }));
  swarm.run_for(120s);
  // 6 at 1 and 3 at 1/4 make 2.25 a stage at best, where 3 were before.
  EXPECT_GE(commits_per_second(swarm, 60s), 0.9 * healthy * 2.25 / 3) << "healthy: " << healthy;
  EXPECT_LE(asked(swarm), 6u) << "it settles";
  EXPECT_EQ(swarm.launch()->summary().lost, 0u) << "who moves secures what it counted first";
  end_well(swarm);
}

TEST_P(MovingTest, AMoverThatIsKilledAtAnyStepIsAPeerThatDied) {
  for (int step = 0; step < 4; ++step) {
    SCOPED_TRACE(step);
    Swarm swarm(options(static_cast<std::uint64_t>(step) + 1));
    swarm.run_for(30s);
    slow_down(swarm);
    ASSERT_TRUE(run_until(swarm, 40s, [&] { return mover(swarm).has_value(); }));
    const std::size_t peer = *mover(swarm);
    const Session before = swarm.peers()[peer]->peer->session();
    const auto report = [&] { return swarm.peers()[peer]->peer->report(); };
    const std::vector<std::function<bool()>> reached = {
        [&] { return true; },
        [&] { return swarm.peers()[peer]->peer->session() != before; },
        [&] { return report().stage == StageId(2); },
        [&] { return report().phase == PeerPhase::kServing; },
    };
    for (int i = 0; i <= step; ++i) ASSERT_TRUE(run_until(swarm, 40s, reached[static_cast<std::size_t>(i)])) << i;
    swarm.kill_peer(peer, step % 2 == 1);
    EXPECT_TRUE(run_until(swarm, 120s, [&] { return asked(swarm) >= 2; })) << "another one is asked";
    swarm.run_for(30s);
    end_well(swarm);
  }
}

TEST_P(MovingTest, OffMeansThatNobodyIsAsked) {
  SwarmOptions with = options();
  with.config.pipeline.rebalance = Rebalance::kOff;
  Swarm swarm(std::move(with));
  swarm.run_for(30s);
  slow_down(swarm);
  swarm.run_for(60s);
  EXPECT_EQ(asked(swarm), 0u) << "[pipeline] rebalance = \"off\"";
}

// Nobody was asked to before, so that the run stood until a joiner came.
TEST_P(MovingTest, AStageThatLostAllItsPeersBeforeItsFirstRoundIsFilled) {
  SwarmOptions with = options();
  with.config.sync.inner_steps = 1000;  // no round by targets
  with.config.sync.round_cap_s = 0;
  with.config.sync.microbatches_per_step = 1000;
  Swarm swarm(std::move(with));
  swarm.run_for(30s);
  for (const std::size_t peer : of_stage(swarm, 1)) swarm.kill_peer(peer);
  swarm.run_for(60s);
  EXPECT_GE(of_stage(swarm, 1).size(), 1u);
  EXPECT_GT(commits_per_second(swarm, 10s), 1.0);
  EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
}

TEST_P(MovingTest, AMoverWaitsForALaunchingProcessThatIsAway) {
  Swarm swarm(options());
  swarm.run_for(30s);
  slow_down(swarm);
  ASSERT_TRUE(run_until(swarm, 40s, [&] { return mover(swarm).has_value(); }));
  const std::size_t peer = *mover(swarm);
  const Session before = swarm.peers()[peer]->peer->session();
  ASSERT_EQ(swarm.peers()[peer]->peer->report().phase, PeerPhase::kLeaving);
  swarm.kill_launch_process();
  swarm.run_for(60s);
  EXPECT_EQ(swarm.peers()[peer]->peer->session(), before) << "what it counted is not thrown away";
  swarm.resume_launch();
  ASSERT_TRUE(run_until(swarm, 90s, [&] {
    return swarm.peers()[peer]->peer->session() != before &&
           swarm.peers()[peer]->peer->report().phase == PeerPhase::kServing;
  }));
  EXPECT_EQ(swarm.peers()[peer]->peer->report().stage, StageId(2)) << "it knows where it goes";
  end_well(swarm);
}

TEST_P(MovingTest, AMachineThatCannotServeTheOtherStageGoesBack) {
  auto fits = std::make_shared<bool>(true);
  SwarmOptions with = options();
  with.factory = [fits](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
    if (spec.stage == StageId(2) && !*fits) return make_error(ErrorCode::kTooLarge, "the device has no room for it");
    return std::unique_ptr<StageExecutor>(std::make_unique<IntegerExecutor>(spec));
  };
  Swarm swarm(std::move(with));
  swarm.run_for(30s);
  slow_down(swarm);
  *fits = false;
  ASSERT_TRUE(run_until(swarm, 40s, [&] { return mover(swarm).has_value(); }));
  const std::size_t peer = *mover(swarm);
  const auto before = swarm.peers()[peer]->peer->report().stage;
  const auto goes_back = [&] {
    return std::ranges::any_of(swarm.peers()[peer]->notices, [](const std::string& line) {
      return line.find("goes back to stage") != std::string::npos;
    });
  };
  ASSERT_TRUE(run_until(swarm, 60s, goes_back));
  ASSERT_TRUE(run_until(swarm, 60s, [&] { return swarm.peers()[peer]->peer->report().phase == PeerPhase::kServing; }));
  EXPECT_EQ(swarm.peers()[peer]->peer->report().stage, before);
  EXPECT_FALSE(swarm.peers()[peer]->finished);
  *fits = true;
  end_well(swarm);
}

TEST_P(MovingTest, LeavingForGoodEndsAMoveAndTheProcess) {
  Swarm swarm(options());
  swarm.run_for(30s);
  slow_down(swarm);
  ASSERT_TRUE(run_until(swarm, 40s, [&] { return mover(swarm).has_value(); }));
  const std::size_t peer = *mover(swarm);
  swarm.peers()[peer]->peer->leave();
  EXPECT_TRUE(run_until(swarm, 60s, [&] { return swarm.peers()[peer]->finished; }));
  EXPECT_EQ(swarm.peers()[peer]->error, std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Rules, MovingTest, testing::Values(RuleId::kDiloco, RuleId::kAllreduce),
                         [](const auto& rule) { return rule.param == RuleId::kDiloco ? "diloco" : "allreduce"; });

}  // namespace
}  // namespace shoal
