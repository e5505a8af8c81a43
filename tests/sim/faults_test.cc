// Swarms under random kills, freezes, cut links and deaths of the launching process: the counting holds for every seed.
#include <gtest/gtest.h>

#include "common/log.h"
#include "sim/liveness.h"
#include "sim/scenario.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

SwarmOptions options_for(RuleId rule, std::uint64_t seed) {
  SwarmOptions options;
  options.seed = seed;
  options.config = small_config(rule, options.stages, 96);
  return options;
}

// Those that strike one process or one connection.
FaultOptions single_faults() {
  FaultOptions options;
  options.only = {FaultKind::kKill, FaultKind::kFreeze, FaultKind::kCut, FaultKind::kLaunchPower};
  return options;
}

struct Batch {
  RuleId rule;
  std::uint64_t first;
};

// The end of a story, for whoever looks for the cause.
std::string told(const ScenarioResult& result) {
  std::string text;
  const std::size_t lines = std::min<std::size_t>(result.story.size(), 120);
  for (std::size_t i = result.story.size() - lines; i < result.story.size(); ++i) text += "\n" + result.story[i];
  return text;
}

class FaultsTest : public Quiet<testing::TestWithParam<Batch>> {};

constexpr std::uint64_t kSeeds = 40;  // a batch; five batches a rule

std::vector<Batch> batches() {
  std::vector<Batch> result;
  for (std::uint64_t batch = 0; batch < 5; ++batch)
    for (const RuleId rule : {RuleId::kAllreduce, RuleId::kDiloco}) result.push_back({rule, 1 + batch * kSeeds});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Seeds, FaultsTest, testing::ValuesIn(batches()), [](const auto& item) {
  return std::string(item.param.rule == RuleId::kAllreduce ? "Allreduce" : "Diloco") + "From" +
         std::to_string(item.param.first);
});

TEST_P(FaultsTest, CountsEveryGradientOnceAndListsWhatIsLost) {
  std::uint64_t faults = 0, branches = 0, undos = 0;
  for (std::uint64_t seed = GetParam().first; seed < GetParam().first + kSeeds; ++seed) {
    const ScenarioResult result = run_scenario(options_for(GetParam().rule, seed), single_faults());
    EXPECT_TRUE(result.broken.empty()) << "seed " << seed << ": " << result.broken.front() << told(result);
    EXPECT_GE(result.committed, kLiveMicrobatches) << "seed " << seed;
    faults += result.faults;
    branches += result.branches;
    undos += result.undos;
  }
  EXPECT_GT(faults, kSeeds);  // the scenarios do strike
  EXPECT_GT(branches, 0u);
  EXPECT_GT(undos, 0u);
}

// A standby goes on 100 ms behind each death of a process, also where the disk of both is slow, full or failing.
TEST(FaultsStandbyTest, ARunThatOneProcessTakesFromTheOtherCountsEveryGradientOnce) {
  set_log_level(LogLevel::kError);
  FaultOptions mix = single_faults();
  mix.only.insert({FaultKind::kLaunchKill, FaultKind::kLaunchFreeze, FaultKind::kSlowDisk, FaultKind::kFullDisk,
                   FaultKind::kFailingDisk, FaultKind::kLaunchPartition});
  mix.mean_between = 1s;
  constexpr std::uint64_t kStandbySeeds = 30;
  std::uint64_t takeovers = 0;
  for (std::uint64_t seed = 1; seed <= kStandbySeeds; ++seed) {
    SwarmOptions options = options_for(seed % 2 == 0 ? RuleId::kDiloco : RuleId::kAllreduce, seed);
    options.standby = true;
    const ScenarioResult result = run_scenario(std::move(options), mix);
    EXPECT_TRUE(result.broken.empty()) << "seed " << seed << ": " << result.broken.front() << told(result);
    takeovers += result.takeovers;
  }
  EXPECT_GT(takeovers, kStandbySeeds);
}

// Machines of unlike speed: peers are asked to move while all kinds of faults strike, their movers among the victims.
TEST(FaultsMovesTest, PeersThatMoveAmongFaultsAreCountedOnceEverywhere) {
  set_log_level(LogLevel::kError);
  ScenarioResult total;
  constexpr std::uint64_t kMovesSeeds = 24;
  for (std::uint64_t seed = 1; seed <= kMovesSeeds; ++seed) {
    const RuleId rule = seed % 2 == 0 ? RuleId::kDiloco : RuleId::kAllreduce;
    SwarmOptions options = options_for(rule, seed);
    options.replicas = 3;
    options.config = small_config(rule, options.stages, 100'000);
    options.unlike = 8;
    const ScenarioResult result = run_scenario(std::move(options), {});
    EXPECT_TRUE(result.broken.empty()) << "seed " << seed << ": " << result.broken.front() << told(result);
    total.add(result);
  }
  EXPECT_GE(total.lives_with_moves, kMovesSeeds / 3) << total.asked_to_move << " were asked to";
}

// Rounds that wait two seconds for a member, faults every second, and pairs that do not hear each other: members miss
// rounds, and follow. In seeds 29 and 83 the last rounds met the same unreachable pair again and again, though one of
// the two had brought all that it held: entries of the other were lost.
TEST(FaultsShiftTest, MembersThatFallBehindFollowAndNothingIsCountedTwice) {
  set_log_level(LogLevel::kError);
  FaultOptions mix = single_faults();
  mix.only.insert({FaultKind::kPartition, FaultKind::kOneWay});
  mix.mean_between = 1s;
  std::uint64_t behind = 0, shifts = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SwarmOptions options = options_for(RuleId::kDiloco, seed);
    options.stages = 2;
    options.replicas = 3;
    options.config = small_config(RuleId::kDiloco, 2, 400);
    options.round_budget = 2s;
    const ScenarioResult result = run_scenario(std::move(options), mix);
    EXPECT_TRUE(result.broken.empty()) << "seed " << seed << ": " << result.broken.front();
    behind += result.behind;
    shifts += result.shifts_anchor + result.shifts_snapshot;
  }
  EXPECT_GT(behind, 10u);
  EXPECT_GT(shifts, 5u);
}

TEST(FaultsTraceTest, TheSameSeedGivesTheSameTrace) {
  set_log_level(LogLevel::kError);
  for (const RuleId rule : {RuleId::kAllreduce, RuleId::kDiloco}) {
    const ScenarioResult one = run_scenario(options_for(rule, 17), single_faults());
    const ScenarioResult two = run_scenario(options_for(rule, 17), single_faults());
    const ScenarioResult other = run_scenario(options_for(rule, 18), single_faults());
    EXPECT_EQ(one.trace, two.trace);
    EXPECT_NE(one.trace, other.trace);
  }
}

TEST(FaultsOccurTest, ACommitIsAnsweredGoneInSomeRun) {
  set_log_level(LogLevel::kError);
  std::uint64_t gone = 0;
  for (std::uint64_t seed = 1; seed <= 30 && gone == 0; ++seed)
    gone += run_scenario(options_for(RuleId::kDiloco, seed), single_faults()).gone;
  EXPECT_GT(gone, 0u);
}

}  // namespace
}  // namespace shoal
