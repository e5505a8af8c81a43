// What a swarm costs the launching process, and that nobody is left with an old list.
#include "sim/scale.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/swarm.h"

namespace shoal {
namespace {

std::size_t all_members(const Swarm& swarm) {
  std::size_t count = 0;
  for (const StageMembers& stage : swarm.launch()->authority().members().stages) count += stage.members.size();
  return count;
}

// What peer `index` believes of the members.
std::optional<Epoch> list_of(const Swarm& swarm, std::size_t index) {
  const auto* stage_peer = swarm.peers()[index]->peer->stage_peer();
  if (stage_peer == nullptr) return std::nullopt;
  return stage_peer->neighbours().roster().list().epoch;
}

TEST(ScaleTest, ManyJoinersAreAdmittedInSeconds) {
  SwarmOptions options;
  options.replicas = 0;
  options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
  Swarm swarm(std::move(options));
  swarm.run_for(500ms);  // by then the launching process listens
  for (int i = 0; i < 120; ++i) swarm.add_peer();
  swarm.run_for(2400ms);
  EXPECT_EQ(all_members(swarm), 120u) << "50 a second";
}

TEST(ScaleTest, APeerThatMissedWhatChangedAsksForIt) {
  SwarmOptions options;
  options.replicas = 3;
  options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
  Swarm swarm(std::move(options));
  swarm.run_for(6s);
  const std::string away = swarm.peers()[0]->address;
  // What the launching process says meanwhile is lost with the connection.
  swarm.network().block(kSimLaunchAddress, away);
  swarm.run_for(100ms);
  const auto before = list_of(swarm, 0);
  ASSERT_TRUE(before.has_value());
  swarm.add_peer();
  swarm.run_for(2s);
  swarm.network().cut(kSimLaunchAddress, away);
  swarm.network().block(kSimLaunchAddress, away, false);
  EXPECT_EQ(list_of(swarm, 0), before);
  const auto all_have_the_same = [&] {
    for (std::size_t i = 0; i < swarm.peers().size(); ++i)
      if (list_of(swarm, i) != swarm.launch()->authority().members().epoch) return false;
    return true;
  };
  swarm.run_for(3s);
  EXPECT_TRUE(swarm.loop().run_until_true(all_have_the_same, swarm.loop().now() + 5s));
  ASSERT_EQ(swarm.peers()[0]->peer->report().phase, PeerPhase::kServing) << "it stayed a member";
  EXPECT_EQ(all_members(swarm), 10u);
  EXPECT_GT(*list_of(swarm, 0), *before);
}

TEST(ScaleTest, ListsFollowTheChurnAndNotTheSwarm) {
  ScaleOptions options;
  options.peers = 60;
  options.measured = 12s;
  const ScaleFigures figures = measure_scale(options);
  EXPECT_EQ(figures.churned, 11u);
  EXPECT_GE(figures.serving, 45u) << text_of(figures);
  EXPECT_LT(figures.list_bytes / static_cast<double>(figures.peers), 1000.0) << text_of(figures);
  EXPECT_GT(figures.committed, 0u);
  const auto json = nlohmann::ordered_json::parse(json_of(figures));
  EXPECT_EQ(json.begin().key(), "peers");
  EXPECT_EQ(json.at("peers"), 60);
  EXPECT_EQ(json.at("churned"), 11);
  EXPECT_NEAR(json.at("launch_bytes_per_second").get<double>(), figures.launch_bytes, 0.001 * figures.launch_bytes);
}

TEST(ScaleTest, AnUnchangedSwarmHearsOfNoList) {
  ScaleOptions options;
  options.peers = 30;
  options.measured = 4s;
  options.churn_period = Duration(0);
  const ScaleFigures figures = measure_scale(options);
  EXPECT_EQ(figures.serving, 30u);
  EXPECT_LT(figures.list_bytes / 30, 200.0) << "at most a round's new version: " << text_of(figures);
}

}  // namespace
}  // namespace shoal
