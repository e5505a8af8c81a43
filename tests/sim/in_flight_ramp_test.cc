// [pipeline] in_flight_ramp over a whole run: few microbatches under way at first, all of them later, and a resumed
// launching process goes on from where the run was. And what the launching process says of a number that costs much.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/checkers.h"
#include "stages/integer_executor.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

constexpr std::uint64_t kMicrobatches = 400;

SwarmOptions ramped() {
  SwarmOptions options;
  options.stages = 2;
  options.config = small_config(RuleId::kDiloco, options.stages, kMicrobatches);
  options.config.pipeline.in_flight_ramp = std::vector<double>{0.1, 0.6};
  return options;
}

// What the launching process's event lines say of it, issue by issue.
struct Opened {
  std::uint64_t committed;  // microbatches, at that moment
  std::uint64_t open;       // with the one just issued
};
// `resumed`: so many event lines were there when another life of it began, in which nothing is open at first.
std::vector<Opened> opened(const Swarm& swarm, std::size_t resumed = SIZE_MAX) {
  std::vector<Opened> all;
  std::set<MicrobatchId> open, committed;
  const std::vector<SimEvent>& events = swarm.events();
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i == resumed) open.clear();
    const SimEvent& event = events[i];
    if (event.event == EventKind::kIssue) {
      open.insert(*event.microbatch);
      all.push_back({committed.size(), open.size()});
    } else if (event.event == EventKind::kCommit) {
      committed.insert(*event.microbatch);  // a resumed process says some of them again
      open.erase(*event.microbatch);
    }
  }
  return all;
}

std::uint64_t allowed(const RunConfig& config, std::uint64_t committed) {
  return flight_limits(config).at(committed * config.targets_per_microbatch());
}

class InFlightRampTest : public Quiet<testing::Test> {};

TEST_F(InFlightRampTest, SoManyAreOpenAsTheRampAllowsAndAllOfThemAtItsEnd) {
  const SwarmOptions options = ramped();
  const RunConfig& config = options.config;
  ASSERT_LT(flight_limits(config).fewest, in_flight_of(config));
  Swarm swarm(options);
  ASSERT_TRUE(swarm.run_to_end(600s));
  EXPECT_EQ(swarm.summary().committed, kMicrobatches);
  std::uint64_t most_at_first = 0, most = 0;
  for (const Opened& now : opened(swarm)) {
    ASSERT_LE(now.open, allowed(config, now.committed)) << "after " << now.committed;
    if (now.committed <= kMicrobatches / 10) most_at_first = std::max(most_at_first, now.open);
    most = std::max(most, now.open);
  }
  EXPECT_EQ(most_at_first, flight_limits(config).fewest);
  EXPECT_EQ(most, in_flight_of(config));
  EXPECT_DOUBLE_EQ(swarm.summary().full_in_flight_share, 0.4);
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
}

TEST_F(InFlightRampTest, AResumedProcessGoesOnFromWhereTheRunWas) {
  const SwarmOptions options = ramped();
  const RunConfig& config = options.config;
  Swarm swarm(options);
  ASSERT_TRUE(swarm.loop().run_until_true([&] { return swarm.launch()->book().committed() >= kMicrobatches * 2 / 5; },
                                          swarm.loop().now() + 300s));
  const std::size_t before = opened(swarm).size();
  swarm.kill_launch();
  const std::size_t resumed = swarm.events().size();
  swarm.resume_launch();
  ASSERT_TRUE(swarm.run_to_end(600s));
  EXPECT_EQ(swarm.summary().committed, kMicrobatches);
  const std::vector<Opened> all = opened(swarm, resumed);
  ASSERT_GT(all.size(), before);
  for (const Opened& now : all) ASSERT_LE(now.open, allowed(config, now.committed)) << "after " << now.committed;
  // The new process fills the pipe at once, up to the middle of the ramp.
  const std::uint64_t committed = all[before].committed, middle = allowed(config, committed);
  EXPECT_GT(middle, flight_limits(config).fewest);
  EXPECT_LT(middle, in_flight_of(config));
  ASSERT_GE(all.size(), before + middle);
  EXPECT_EQ(all[before + middle - 1].open, middle);
  EXPECT_EQ(all[before + middle - 1].committed, committed);
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
}

// Eight microbatches under way are four steps of two replicas that step at every one of them, and a sixteenth of a
// step of two that wait for 64.
TEST_F(InFlightRampTest, WhatItCostsOrLeavesOfThePipeIsSaidOnceAtTheStart) {
  const auto said = [](const std::string& words, std::uint64_t window, Auto<std::uint32_t> in_flight) {
    SwarmOptions options;
    options.config = small_config(RuleId::kDiloco, options.stages, 40);
    options.config.executor.kind = ExecutorKind::kTorch;  // else nothing is learned, and nothing lost
    options.config.sync.inner_batch = window * options.config.targets_per_microbatch();
    options.config.pipeline.in_flight = in_flight;
    options.factory = [](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
      return std::unique_ptr<StageExecutor>(std::make_unique<IntegerExecutor>(spec, parameter_count(spec)));
    };
    Swarm swarm(options);
    EXPECT_TRUE(
        swarm.loop().run_until_true([&] { return swarm.launch()->trainer() != nullptr; }, swarm.loop().now() + 60s));
    return std::ranges::count_if(swarm.notices(),
                                 [&](const std::string& line) { return line.find(words) != std::string::npos; });
  };
  const std::string cost = "microbatches in flight gradients will be about", use = "leaves the pipe at about";
  EXPECT_EQ(said(cost, 1, 8), 1);
  EXPECT_EQ(said(cost, 64, 8), 0);
  EXPECT_EQ(said(use, 1, {}), 1);
  EXPECT_EQ(said(use, 1, 1), 0) << "not chosen by \"auto\"";
  EXPECT_EQ(said(use, 64, {}), 0) << "it is full";
}

}  // namespace
}  // namespace shoal
