// The contest of routing policies: its worlds, their ideal, and that what is worse comes out worse.
#include "bench/routing_bench.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/routing_worlds.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

// The first peer of the list, however long the queue there.
class Blind final : public RoutingPolicy {
 public:
  std::optional<Session> pick(SampleId, std::span<const Candidate> candidates) override {
    return candidates.empty() ? std::nullopt : std::optional(candidates.front().session);
  }
};

RoutingWorld world_named(const std::string& name) {
  for (RoutingWorld& world : routing_worlds())
    if (world.name == name) return world;
  ADD_FAILURE() << "no world " << name;
  return {};
}

RoutingFigures run(const RoutingWorld& world, RoutingId id = RoutingId::kRendezvous, std::uint64_t seed = 1) {
  const auto make = [id](std::uint64_t own) { return make_policy(id, own); };
  return run_routing(world, kRoutingNames[static_cast<std::size_t>(id)], make, seed);
}

TEST(RoutingContestTest, TheSameSeedGivesTheSameTable) {
  RoutingOptions options;
  options.worlds = {"heavy-tail", "unequal-32"};
  std::size_t told = 0;
  const auto tell = [&](const RoutingFigures&) { ++told; };
  const auto first = routing_contest(options, tell), second = routing_contest(options, tell);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(told, 2 * 2 * kRoutingNames.size());
  EXPECT_EQ(routing_table(*first), routing_table(*second));
  EXPECT_EQ(routing_json(*first), routing_json(*second));
  options.seed = 2;
  EXPECT_NE(routing_json(*routing_contest(options, tell)), routing_json(*first));
}

TEST(RoutingContestTest, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  RoutingOptions options;
  options.policies = {"dice"};
  const auto figures = routing_contest(options, [](const RoutingFigures&) {});
  ASSERT_FALSE(figures.ok());
  EXPECT_NE(figures.error().message.find("no dice"), std::string::npos);
  EXPECT_NE(figures.error().message.find("two-choices"), std::string::npos);
}

TEST(RoutingContestTest, TheDefaultKeepsUnequalPeersBusyAndNoMicrobatchWaitsLong) {
  const RoutingFigures figures = run(world_named("unequal-8"));
  EXPECT_GE(figures.share, 0.97);
  EXPECT_LE(figures.p99, 3 * figures.p50);
  EXPECT_GE(figures.base_hits, 0.8);
  EXPECT_GE(figures.fairness, 0.99);
  EXPECT_GE(run(world_named("equal")).share, 0.99);
}

TEST(RoutingContestTest, APolicyThatLooksAtNothingIsWorse) {
  RoutingWorld world = world_named("unequal-8");
  world.measured = 20s;
  const auto blind = [](std::uint64_t) { return std::make_unique<Blind>(); };
  const RoutingFigures worse = run_routing(world, "blind", blind, 1), figures = run(world);
  EXPECT_LT(worse.share, 0.9 * figures.share);
  EXPECT_GT(figures.done, 0u);
}

TEST(RoutingContestTest, BasesAreMetAgainByThePolicyThatSeeksThem) {
  RoutingWorld world = world_named("equal");
  world.measured = 20s;
  EXPECT_GT(run(world).base_hits, 0.8);
  EXPECT_LT(run(world, RoutingId::kLeast).base_hits, 0.5);
}

TEST(RoutingContestTest, APeerThatHangsOrIsNotHeardCostsItsOwnShareAlone) {
  for (const char* name : {"hung", "one-way", "gray-100"}) {
    const RoutingFigures figures = run(world_named(name));
    EXPECT_GE(figures.share, 0.97) << name;
    EXPECT_LE(figures.p99, 1.0) << name;
    EXPECT_LT(figures.twice, 0.05) << name;
  }
}

TEST(RoutingContestTest, APeerThatLiesAboutItsSpeedGainsNothing) {
  const RoutingFigures honest = run(world_named("unequal-8")), figures = run(world_named("liar"));
  EXPECT_GE(figures.share, honest.share - 0.02);
  EXPECT_LE(figures.p50, 1.2 * honest.p50);
}

TEST(RoutingContestTest, EqualPeersBehindThinLinesAreUsedAlike) {
  const RoutingFigures figures = run(world_named("thin-lines"));
  EXPECT_GE(figures.share, 0.87);  // 0.86 where the error of a peer that had nothing fades to 1
  const auto [least, most] = std::minmax_element(figures.use.begin(), figures.use.end());
  EXPECT_GE(*least, 0.8 * *most);
}

TEST(RoutingContestTest, PeersThatComeAndGoAreReplacedAndLittleIsDoneTwice) {
  RoutingWorld world = world_named("equal");
  world.measured = 20s;
  for (std::size_t place = 0; place < 6; ++place) world.changes.push_back({0s, place, true});
  for (int i = 0; i < 9; ++i) {
    const auto place = static_cast<std::size_t>(i % 3);
    world.changes.push_back({Duration(2s) * (i + 1), place, false});
    world.changes.push_back({Duration(2s) * (i + 1), place, true});
  }
  const RoutingFigures figures = run(world);
  EXPECT_GE(figures.share, 0.8);
  EXPECT_LE(figures.share, 1.0);
  EXPECT_GT(figures.twice, 0.0) << "what a machine takes with it is computed again";
  EXPECT_LT(figures.twice, 0.05);
}

TEST(RoutingWorldTest, TheIdealIsTheSumOfRatesWhileTheyLast) {
  RoutingWorld world;
  world.peers = {{.compute = 20ms}, {.compute = 50ms}};
  EXPECT_NEAR(ideal_of(world), 60 * (50 + 20), 1e-6);
  world.peers[0].slower = 10;
  EXPECT_NEAR(ideal_of(world), 10 * 50 + 50 * 5 + 60 * 20, 1e-6);
  world.peers[0].hangs = true;
  EXPECT_NEAR(ideal_of(world), 10 * 50 + 60 * 20, 1e-6);
  world.peers[0].hangs = false;
  world.peers[0].mutes = true;
  EXPECT_NEAR(ideal_of(world), 10 * 50 + 60 * 20, 1e-6);
}

TEST(RoutingWorldTest, ThePeersThatAreAwayAreNotInTheIdeal) {
  RoutingWorld world;
  world.peers = {{.compute = 20ms}, {.compute = 50ms}};
  world.changes = {{0s, 0, true}, {5s, 0, false}, {15s, 0, true}, {20s, 1, true}, {50s, 1, false}};
  EXPECT_NEAR(ideal_of(world), (60 - 10) * 50 + 30 * 20, 1e-6);
}

TEST(RoutingWorldTest, WhereLinesBindTheyAreTheIdeal) {
  RoutingWorld world;
  world.senders = 2;
  world.frame_bytes = 1000;
  world.peers = {{.compute = 20ms}, {.compute = 20ms}};
  world.line = [](std::size_t sender, std::size_t peer) {
    return RoutingLine{.bytes_per_second = peer == 1 ? (sender == 0 ? 10'000.0 : 5'000.0) : 1e9};
  };
  EXPECT_NEAR(ideal_of(world), 60 * (50 + 15), 1e-6);
}

TEST(RoutingWorldTest, LinesBetweenRegionsHaveTheirDelayAndRate) {
  const ScratchFolder folder;
  const auto world =
      world_of_lines(folder.write("lines.csv",
                                  "a,b,delay_ms,bandwidth_gib_per_s,bandwidth_mbps\nX,Y,67,9,800\nX,Z,50,9,80\n"
                                  "Y,Z,11,9,8\nX,W,1,9,1\nW,Y,1,9,1\nZ,W,20,9,16\n"));
  ASSERT_TRUE(world.ok()) << world.error().message;
  EXPECT_EQ(world->name, "lines");
  ASSERT_EQ(world->senders, 2u);  // X and Z; peers: Y and W
  ASSERT_EQ(world->peers.size(), 2u);
  EXPECT_EQ(world->line(0, 0).delay, 67ms);
  EXPECT_NEAR(world->line(0, 0).bytes_per_second, 1e8, 1);
  EXPECT_EQ(world->line(1, 0).delay, 11ms);
  EXPECT_EQ(world->line(1, 1).delay, 20ms);
  EXPECT_NEAR(world->line(1, 1).bytes_per_second, 2e6, 1);
}

TEST(RoutingWorldTest, FilesThatAreNoneAreRefusedWithTheirLine) {
  const ScratchFolder folder;
  EXPECT_EQ(world_of_lines(folder.path() + "/none.csv").error().code, ErrorCode::kMissing);
  const auto refused = [&](const std::string& text, auto read) {
    const auto world = read(folder.write("file.csv", text));
    return world.ok() ? std::string("accepted") : world.error().message;
  };
  EXPECT_NE(refused("a,b\n", world_of_lines).find("heading"), std::string::npos);
  EXPECT_NE(refused("a,b,delay_ms,bandwidth_gbps\nX,Y,fast,1\n", world_of_lines).find("file.csv:2: "),
            std::string::npos);
  EXPECT_NE(refused("a,b,delay_ms,bandwidth_gbps\nX,Y,1,0\n", world_of_lines).find("file.csv:2: "), std::string::npos);
  EXPECT_NE(refused("a,b,delay_ms,bandwidth_gbps\n\nX,Y\n", world_of_lines).find("file.csv:3: "), std::string::npos);
  EXPECT_NE(refused("a,b,delay_ms,bandwidth_gbps\nX,Y,1,1\nX,Z,1,1\n", world_of_lines).find("each two"),
            std::string::npos);
  EXPECT_NE(refused("0,add,n1\n5,lost,n1\n", world_of_trace).find("line 2"), std::string::npos);
  EXPECT_NE(refused("0,add\n", world_of_trace).find("line 1"), std::string::npos);
}

TEST(RoutingWorldTest, ATraceIsPlayedFasterFromItsSecondHourOn) {
  const ScratchFolder folder;
  const auto world = world_of_trace(folder.write("trace.csv",
                                                 "0,add,n1\n10,add,n2\n20,remove,n2\n3660000,add,n2\n"
                                                 "3720000,remove,n1\n"));
  ASSERT_TRUE(world.ok()) << world.error().message;
  ASSERT_EQ(world->peers.size(), 2u);
  ASSERT_EQ(world->changes.size(), 5u);
  EXPECT_EQ(world->changes[3].at, 1s);
  EXPECT_EQ(world->changes[4].at, 2s);
  const double rate = 1 / seconds_of(world->peers[0].compute);
  EXPECT_NEAR(ideal_of(*world), rate * (2 + seconds_of(world->measured) - 1), 1e-6);
}

}  // namespace
}  // namespace shoal
