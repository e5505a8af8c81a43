// Whole swarms in virtual time: what happens without faults.
#include <gtest/gtest.h>

#include "sim/swarm.h"

namespace shoal {
namespace {

std::string text_of(const Swarm& swarm) {
  std::string text;
  for (const std::string& line : swarm.notices()) text += "launch: " + line + "\n";
  for (std::size_t i = 0; i < swarm.peers().size(); ++i)
    if (const auto& error = swarm.peers()[i]->error) text += "peer " + std::to_string(i) + " failed: " + error->message + "\n";
  for (std::size_t i = 0; i < swarm.peers().size(); ++i)
    for (const std::string& line : swarm.peers()[i]->notices) text += "peer " + std::to_string(i) + ": " + line + "\n";
  std::map<std::string, int> counts;
  for (const EventRecord& e : swarm.events()) ++counts[e.event + (e.cause.empty() ? "" : " (" + e.cause + ")")];
  for (const EventRecord& e : swarm.events())
    if (e.microbatch && e.microbatch->serial == 14 && e.microbatch->trainer < (1ull << 63)) {
      std::ostringstream line;
      line << e.event << " stage " << (e.stage ? int(e.stage->value) : -1) << " by " << e.more.back().second;
      if (e.about) line << " about " << short_name(*e.about);
      if (e.token) line << " token " << e.token->serial;
      text += line.str() + " " + e.cause + "\n";
    }
  for (const auto& [name, count] : counts) text += name + ": " + std::to_string(count) + "\n";
  return text;
}

class SwarmRuleTest : public testing::TestWithParam<RuleId> {};
INSTANTIATE_TEST_SUITE_P(Rules, SwarmRuleTest, testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                         [](const auto& item) { return item.param == RuleId::kAllreduce ? "Allreduce" : "Diloco"; });

TEST_P(SwarmRuleTest, TrainsToTheEndWithoutFaults) {
  SwarmOptions options;
  options.config = small_config(GetParam(), options.stages, 64);
  Swarm swarm(std::move(options));
  ASSERT_TRUE(swarm.run_to_end(120s)) << text_of(swarm);
  const RunSummary& summary = swarm.summary();
  EXPECT_EQ(summary.committed, 64u);
  EXPECT_EQ(summary.unfinished, 0u);
  EXPECT_EQ(summary.listed, 0u) << text_of(swarm);
  EXPECT_EQ(summary.retried, 0u);
  EXPECT_TRUE(summary.validation_loss.has_value());
  EXPECT_EQ(swarm.launch()->book().unmerged(), 0u) << text_of(swarm);
}

}  // namespace
}  // namespace shoal
