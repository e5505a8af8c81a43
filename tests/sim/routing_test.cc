// [pipeline] routing reaches both who choose: the trainer for stage 0, a peer for the stage after its own.
#include <gtest/gtest.h>

#include "common/log.h"
#include "sim/swarm.h"

namespace shoal {
namespace {

// How unevenly each sender asked the peers of the next stage: the most asked less the least asked.
std::map<Session, std::uint64_t> unevenness(RoutingId routing) {
  SwarmOptions options;
  options.stages = 2;
  options.replicas = 3;
  options.config = small_config(RuleId::kDiloco, 2, 1500);
  options.config.pipeline.routing = routing;
  Swarm swarm(std::move(options));
  EXPECT_TRUE(swarm.run_to_end(3000s));
  std::map<Session, std::map<Session, std::uint64_t>> asked;
  for (const SimEvent& event : swarm.events())
    if (event.event == EventKind::kForwardSent) ++asked[event.writer][*event.about];
  std::map<Session, std::uint64_t> result;
  for (const auto& [sender, counts] : asked) {
    EXPECT_EQ(counts.size(), 3u);
    std::uint64_t least = UINT64_MAX, most = 0;
    for (const auto& [peer, count] : counts) least = std::min(least, count), most = std::max(most, count);
    result[sender] = most - least;
  }
  return result;
}

TEST(RoutingTest, TheRunFileNamesThePolicyOfTrainerAndPeers) {
  set_log_level(LogLevel::kError);
  // Shares that are drawn by a hash wander apart with the root of their number; whoever goes round keeps them together.
  const auto hashed = unevenness(RoutingId::kRendezvous), in_turn = unevenness(RoutingId::kIwrr);
  ASSERT_EQ(hashed.size(), 4u) << "the trainer and three peers";
  for (const auto& [sender, wandered] : hashed) EXPECT_LT(2 * in_turn.at(sender), wandered) << short_name(sender);
}

}  // namespace
}  // namespace shoal
