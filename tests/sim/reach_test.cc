// Swarms of which some peers cannot be dialled, and whose routers forget.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/log.h"
#include "sim/checkers.h"
#include "sim/liveness.h"
#include "sim/scenario.h"
#include "tests/quiet_log.h"
#include "tests/sim/lying_wire.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

SwarmOptions reach_options(RuleId rule, std::uint64_t seed, std::uint64_t microbatches, double unreachable = 0) {
  SwarmOptions options;
  options.seed = seed;
  options.reach.unreachable = unreachable;
  options.config = small_config(rule, options.stages, microbatches);
  return options;
}

class ReachTest : public Quiet<testing::Test> {
 protected:
  static bool serves(const Swarm& swarm, std::size_t peer) {
    return swarm.peers()[peer]->peer->report().phase == PeerPhase::kServing;
  }
  static std::uint64_t committed(const Swarm& swarm) { return swarm.launch()->book().committed(); }
  // It commits more, nothing is counted twice, and the run comes to its end.
  static void expect_goes_on(Swarm& swarm) {
    const std::uint64_t before = committed(swarm);
    swarm.run_for(30s);
    EXPECT_EQ(first_broken(check_counting(swarm)), "");
    EXPECT_GE(committed(swarm), before + kLiveMicrobatches);
    for (std::size_t i = 0; i < swarm.peers().size(); ++i) EXPECT_TRUE(serves(swarm, i)) << i;
    swarm.finish_launch("enough");
    ASSERT_TRUE(swarm.run_to_end(120s));
    EXPECT_EQ(first_broken(check_end(swarm)), "");
  }
};

// What members of each round were told, by stage and round. Outlives the swarm.
using OpensByRound = std::map<std::pair<StageId, RoundId>, RoundOpen>;
void listen_for_opens(SwarmOptions& options, OpensByRound& opens) {
  const auto hear = [&opens](Message& message) -> std::optional<Message> {
    if (const auto* open = std::get_if<RoundOpen>(&message)) opens[{open->stage, open->round}] = *open;
    return std::nullopt;
  };
  options.wires = [hear](const PeerId&, std::unique_ptr<Wire> wire) -> std::unique_ptr<Wire> {
    return std::make_unique<LyingWire>(std::move(wire), LyingWire::Tongue(), hear);
  };
}

// So many of `sessions` can be dialled, by the list.
std::size_t direct_ones(const Swarm& swarm, const std::vector<Session>& sessions) {
  std::size_t direct = 0;
  for (const StageMembers& stage : swarm.launch()->authority().members().stages)
    for (const Member& member : stage.members)
      direct += member.whereabouts.reach == Reach::kDirect && std::ranges::count(sessions, member.session) > 0;
  return direct;
}

struct ReachCase {
  std::uint16_t replicas = 4, dialable = 1;
  std::size_t owners = 1;  // the dialable ones among them
};

class ReachRoundsTest : public testing::TestWithParam<std::tuple<RuleId, ReachCase>> {};

// Nobody waits for a pair that never meets, and no round is lost for one.
TEST_P(ReachRoundsTest, AllOfAStageBringTheirWorkToRoundsThatThoseOwnWhoMeetAll) {
  set_log_level(LogLevel::kError);
  const auto [rule, of] = GetParam();
  OpensByRound opens;
  SwarmOptions options = reach_options(rule, 1, 1'000'000, 1 - double(of.dialable) / of.replicas);
  options.replicas = of.replicas;
  listen_for_opens(options, opens);
  Swarm swarm(std::move(options));
  swarm.run_for(20s);
  const TimePoint settled = swarm.loop().now();
  opens.clear();
  swarm.run_for(60s);
  EXPECT_EQ(first_broken(check_counting(swarm)), "");
  for (const auto& [round, open] : opens) {
    std::vector<Session> owning;
    for (const std::uint16_t owner : open.owners) owning.push_back(open.members.at(owner));
    EXPECT_EQ(owning.size(), of.owners);
    EXPECT_EQ(direct_ones(swarm, owning), of.dialable);
  }
  std::map<StageId, std::size_t> rounds;
  for (const SimEvent& event : swarm.events()) {
    EXPECT_EQ(event.cause.find("cannot exchange"), std::string::npos) << event.cause;
    if (event.at < settled) continue;
    EXPECT_NE(event.event, EventKind::kRoundFailed) << event.cause;
    if (event.event != EventKind::kRoundCommit || !event.stage) continue;
    ++rounds[*event.stage];
    EXPECT_EQ(event.secured->size(), of.replicas);
  }
  for (std::uint16_t stage = 0; stage < swarm.options().stages; ++stage) EXPECT_GT(rounds[StageId(stage)], 5u);
  EXPECT_EQ(sessions_over(swarm), 0u);
  swarm.finish_launch("enough");
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_EQ(first_broken(check_end(swarm)), "");
}

std::string name_of_case(const testing::TestParamInfo<ReachRoundsTest::ParamType>& info) {
  const auto& [rule, of] = info.param;
  return std::string(rule == RuleId::kAllreduce ? "Allreduce" : "Diloco") + std::to_string(of.dialable) + "Of" +
         std::to_string(of.replicas);
}

INSTANTIATE_TEST_SUITE_P(Rules, ReachRoundsTest,
                         testing::Combine(testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                                          testing::Values(ReachCase{4, 1, 1}, ReachCase{3, 2, 3})),
                         name_of_case);

TEST_F(ReachTest, AllServeWhereOneOfEachStageCanBeDialled) {
  Swarm swarm(reach_options(RuleId::kDiloco, 1, 100'000, 0.6));
  swarm.run_for(70s);
  std::set<std::string> homes;
  for (std::size_t i = 0; i < swarm.peers().size(); ++i) {
    const SimNat nat = nat_of(swarm.options(), i);
    EXPECT_EQ(nat.dialable(), i < swarm.options().stages) << "one of each stage can";
    homes.insert(nat.home);
    EXPECT_TRUE(serves(swarm, i)) << i;
  }
  EXPECT_GT(homes.size(), 1u);
  EXPECT_EQ(told(swarm, "no member that can be dialled"), 0u);
  EXPECT_EQ(first_broken(check_counting(swarm)), "");
  EXPECT_GT(committed(swarm), 100u);
  swarm.finish_launch("enough");
  ASSERT_TRUE(swarm.run_to_end(60s));
  EXPECT_EQ(first_broken(check_end(swarm)), "");
}

TEST_F(ReachTest, AStageThatNobodyDialsIsSaid) {
  Swarm swarm(reach_options(RuleId::kDiloco, 1, 100'000, 1));
  swarm.run_for(30s);
  EXPECT_GE(told(swarm, "stage 0 has no member that can be dialled"), 1u);
}

TEST_F(ReachTest, ASwarmGoesOnWhenARouterForgetsAMembersConnections) {
  for (const RuleId rule : {RuleId::kAllreduce, RuleId::kDiloco}) {
    for (const bool resets : {false, true}) {
      Swarm swarm(reach_options(rule, 3, 100'000));
      swarm.run_for(5s);
      for (int flush = 0; flush < 3; ++flush) {
        swarm.network().flush(swarm.peers()[1]->address, resets);
        swarm.run_for(4s);
        EXPECT_EQ(first_broken(check_counting(swarm)), "");
      }
      expect_goes_on(swarm);
    }
  }
}

TEST_F(ReachTest, ASwarmGoesOnWhenARouterHasANewAddress) {
  Swarm swarm(reach_options(RuleId::kDiloco, 4, 100'000));
  SimNetwork& network = swarm.network();
  swarm.run_for(5s);
  const Address& member = swarm.peers()[2]->address;
  network.nats().set(member, sim_home("home", "192.168.1.2:1"));
  swarm.run_for(3s);
  EXPECT_TRUE(serves(swarm, 2)) << "what stands goes on";
  ASSERT_TRUE(network.renumber(member));
  swarm.run_for(20s);
  EXPECT_EQ(first_broken(check_counting(swarm)), "");
  network.nats().set(member, {});
  swarm.run_for(20s);
  expect_goes_on(swarm);
}

TEST_F(ReachTest, RoutersThatForgetAmongReachThatIsLostAndWonBreakNothing) {
  FaultOptions routers;
  routers.only = {FaultKind::kNatFlush, FaultKind::kNatRenumber, FaultKind::kReachLost, FaultKind::kReachWon};
  ScenarioResult total;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const RuleId rule = seed % 2 == 0 ? RuleId::kDiloco : RuleId::kAllreduce;
    const ScenarioResult result = run_scenario(reach_options(rule, seed, 100'000, seed % 4 < 2 ? 0 : 0.6), routers);
    EXPECT_EQ(first_broken(result.broken), "") << "seed " << seed;
    total.add(result);
  }
  EXPECT_EQ(total.fault_kinds.size(), routers.only.size());
}

TEST_F(ReachTest, AllKindsOfFaultsBreakNothingWhereSomeCannotBeDialled) {
  FaultOptions all;
  all.nat = true;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const RuleId rule = seed % 2 == 0 ? RuleId::kDiloco : RuleId::kAllreduce;
    SwarmOptions options = reach_options(rule, seed, 100'000, 0.6);
    options.dht = true;
    const ScenarioResult result = run_scenario(std::move(options), all);
    EXPECT_EQ(first_broken(result.broken), "") << "seed " << seed;
  }
}

TEST_F(ReachTest, ARunThatNobodyCanServeIsNotExpectedToGoOnAndEnds) {
  const ScenarioResult result = run_scenario(reach_options(RuleId::kDiloco, 1, 100'000, 1), {});
  EXPECT_EQ(first_broken(result.broken), "");
}

}  // namespace
}  // namespace shoal
