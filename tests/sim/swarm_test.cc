// Whole swarms in virtual time: what happens without faults.
#include "sim/swarm.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace shoal {
namespace {

std::string text_of(const Swarm& swarm) {
  std::string text;
  for (const std::string& line : swarm.notices()) text += "launch: " + line + "\n";
  for (std::size_t i = 0; i < swarm.peers().size(); ++i)
    if (const auto& error = swarm.peers()[i]->error)
      text += "peer " + std::to_string(i) + " failed: " + error->message + "\n";
  for (std::size_t i = 0; i < swarm.peers().size(); ++i)
    for (const std::string& line : swarm.peers()[i]->notices) text += "peer " + std::to_string(i) + ": " + line + "\n";
  std::map<std::string, int> counts;
  for (const EventRecord& e : swarm.events())
    ++counts[std::string(name_of(e.event)) + (e.cause.empty() ? "" : " (" + e.cause + ")")];
  for (const SimEvent& e : swarm.events())
    if (e.microbatch && e.microbatch->serial == 14 && e.microbatch->trainer < (1ull << 63)) {
      std::ostringstream line;
      line << e.event << " stage " << (e.stage ? int(e.stage->value) : -1) << " by " << short_name(e.writer);
      if (e.about) line << " about " << short_name(*e.about);
      if (e.entry_name) line << " entry " << e.entry_name->serial;
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
  EXPECT_EQ(summary.lost, 0u) << text_of(swarm);
  EXPECT_EQ(summary.asked_again, 0u);
  EXPECT_TRUE(summary.validation_loss.has_value());
  EXPECT_EQ(swarm.launch()->book().unmerged(), 0u) << text_of(swarm);
}

// Between its death and its return the launching process breaks off key exchanges, as one with another key does.
class StrangerAtTheAddressTest : public testing::Test {
 protected:
  static SwarmOptions options() {
    SwarmOptions result;
    result.config = small_config(RuleId::kDiloco, result.stages, 64);
    return result;
  }
  void replace_launch() {
    swarm.run_for(3s);
    swarm.kill_launch();
    swarm.network().add_host("launch:1");
    stranger = swarm.network().make_wire(KeyPair::generate().id(), "launch:1");
  }
  std::size_t ended() const {
    return static_cast<std::size_t>(
        std::count_if(swarm.peers().begin(), swarm.peers().end(), [](const auto& p) { return p->error.has_value(); }));
  }
  Swarm swarm{options()};
  std::unique_ptr<Wire> stranger;
};

TEST_F(StrangerAtTheAddressTest, OneRefusalEndsNoPeer) {
  replace_launch();
  swarm.run_for(60ms);  // all have dialled at once, when their link broke
  stranger.reset();
  swarm.network().kill("launch:1");
  swarm.resume_launch();
  ASSERT_TRUE(swarm.run_to_end(120s)) << text_of(swarm);
  EXPECT_EQ(ended(), 0u) << text_of(swarm);
}

// Their states are what the run goes on with: they are kept as long as the launching process may stay away.
TEST_F(StrangerAtTheAddressTest, PeersThatWereMembersWaitForTheRunHoweverOftenTheyAreRefused) {
  replace_launch();
  swarm.run_for(10s);
  EXPECT_EQ(ended(), 0u) << text_of(swarm);
  stranger.reset();
  swarm.network().kill("launch:1");
  swarm.resume_launch();
  ASSERT_TRUE(swarm.run_to_end(120s)) << text_of(swarm);
  EXPECT_EQ(ended(), 0u) << text_of(swarm);
}

}  // namespace
}  // namespace shoal
