// A state of many MiB holds no loop: whatever a peer does with it, no callback goes through more than a little.
#include <gtest/gtest.h>

#include "common/bulk_bytes.h"
#include "sim/checkers.h"
#include "sim/swarm.h"
#include "stages/paced_executor.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

constexpr std::uint64_t kStateMebibytes = 40;  // of one array: above kLargeBytes, as its parts are not
// A chunk's bytes are copied and summed a few times on their way, and some are sent on in the same callback.
constexpr std::uint64_t kCallbackBytesMax = kBulkBytesMax;
static_assert(kCallbackBytesMax < (kStateMebibytes << 20) / 3, "less than a part of a round");

class LargeStateTest : public Quiet<testing::TestWithParam<RuleId>> {
 protected:
  static SwarmOptions options() {
    SwarmOptions options;
    options.stages = 1;
    options.replicas = 2;
    options.config = small_config(GetParam(), 1, 1'000'000);
    options.config.executor = {.kind = ExecutorKind::kPaced, .state_mib = kStateMebibytes};
    options.pace.forward = 200ms;
    options.pace.backward = 300ms;
    options.factory = [](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
      return {std::make_unique<PacedExecutor>(spec, Pace{}, Wait{}, (kStateMebibytes << 20) / sizeof(float))};
    };
    return options;
  }
  static std::uint64_t version_of(const Swarm& swarm, std::size_t peer) {
    return swarm.peers()[peer]->peer->report().status.version.value;
  }
  static bool run_until(Swarm& swarm, Duration limit, const std::function<bool()>& holds) {
    for (const TimePoint end = swarm.loop().now() + limit; swarm.loop().now() < end; swarm.run_for(100ms))
      if (holds()) return true;
    return holds();
  }
};

TEST_P(LargeStateTest, RoundsAJoinerAFencedPeerAndALeaverHoldNoLoop) {
  Swarm swarm(options());
  const auto most = [&] {
    const std::uint64_t bytes = swarm.loop().most_bulk_bytes();
    swarm.loop().forget_bulk_bytes();
    return bytes;
  };
  ASSERT_TRUE(run_until(swarm, 120s, [&] { return version_of(swarm, 0) >= 2 && version_of(swarm, 1) >= 2; }));
  EXPECT_LE(most(), kCallbackBytesMax) << "rounds";

  swarm.add_peer();
  ASSERT_TRUE(run_until(swarm, 120s, [&] { return version_of(swarm, 2) >= 3; }));
  EXPECT_GT(swarm.peers()[2]->peer->report().fetched_bytes, kStateMebibytes << 20);
  EXPECT_LE(most(), kCallbackBytesMax) << "a joiner and its donor";

  swarm.freeze_peer(1);
  swarm.run_for(25s);
  swarm.resume_peer(1);
  const std::uint64_t sessions = swarm.peers()[1]->peer->report().sessions;
  ASSERT_TRUE(run_until(swarm, 120s, [&] {
    const PeerReport report = swarm.peers()[1]->peer->report();
    return report.sessions > sessions && report.phase == PeerPhase::kServing;
  }));
  EXPECT_LE(most(), kCallbackBytesMax) << "a fenced peer keeps its state and joins again";

  swarm.peers()[2]->peer->leave();
  ASSERT_TRUE(run_until(swarm, 60s, [&] { return swarm.peers()[2]->finished; }));
  EXPECT_LE(most(), kCallbackBytesMax) << "a leaver";
  swarm.finish_launch("enough");
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  EXPECT_LE(most(), kCallbackBytesMax) << "the end";
}

// What the launching process fetches to save is as large.
TEST_P(LargeStateTest, SavingHoldsNoLoop) {
  SwarmOptions saving = options();
  saving.save = true;
  Swarm swarm(std::move(saving));
  ASSERT_TRUE(run_until(swarm, 120s, [&] { return version_of(swarm, 0) >= 1; }));
  swarm.loop().forget_bulk_bytes();
  swarm.finish_launch("enough");
  ASSERT_TRUE(swarm.run_to_end(300s));
  ASSERT_EQ(swarm.states().size(), 1u);
  EXPECT_GT(swarm.states().at(0).size(), kStateMebibytes << 20);
  EXPECT_LE(swarm.loop().most_bulk_bytes(), kCallbackBytesMax);
}

INSTANTIATE_TEST_SUITE_P(Rules, LargeStateTest, testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                         [](const auto& rule) { return rule.param == RuleId::kDiloco ? "diloco" : "allreduce"; });

}  // namespace
}  // namespace shoal
