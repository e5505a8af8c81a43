// Replicas of a stage that never meet, as behind two home routers: a third adds up for both, and nobody rests.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/checkers.h"
#include "tests/quiet_log.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

class ApartTest : public Quiet<testing::TestWithParam<RuleId>> {};

TEST_P(ApartTest, OfThreeReplicasTwoThatNeverMeetBringTheirWorkToEveryRoundAndItCountsOnce) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    SwarmOptions options;
    options.seed = seed;
    options.stages = 2;
    options.replicas = 3;
    options.config = small_config(GetParam(), 2, 1'000'000);
    options.pace = {.forward = 1ms, .backward = 2ms, .undo = 3ms, .write = 1ms, .round = 2ms, .other = 1ms};
    Swarm swarm(std::move(options));
    swarm.run_for(5s);
    std::vector<std::string> hosts;
    for (const auto& hosted : swarm.peers())
      if (hosted->peer->report().stage == StageId(0)) hosts.push_back(hosted->address);
    ASSERT_EQ(hosts.size(), 3u);
    swarm.network().partition(hosts[0], hosts[1]);
    swarm.run_for(30s);  // two attempts show it
    const TimePoint settled = swarm.loop().now();
    swarm.run_for(60s);
    EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
    std::size_t rounds = 0, of_all = 0;
    for (const SimEvent& event : swarm.events()) {
      if (event.event == EventKind::kMember && event.cause.find("cannot exchange") != std::string::npos)
        ADD_FAILURE() << "left out: " << event.cause;
      if (event.event != EventKind::kRoundCommit || event.stage != StageId(0) || event.at < settled) continue;
      ++rounds;
      of_all += event.secured->size() == 3;
    }
    EXPECT_GT(rounds, 5u);
    EXPECT_GE(of_all + 1, rounds) << "but for one in which it is tried whether they meet";
    EXPECT_EQ(sessions_over(swarm), 0u);
    swarm.finish_launch("enough");
    ASSERT_TRUE(swarm.run_to_end(300s));
    EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, ApartTest, testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                         [](const auto& info) { return info.param == RuleId::kAllreduce ? "Allreduce" : "Diloco"; });

}  // namespace
}  // namespace shoal
