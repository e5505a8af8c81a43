// A launching process that dies before it synced, goes on from what the page cache kept, and then loses its power: what
// it read back must have had no effect on anybody before it was durable.
#include <gtest/gtest.h>

#include "common/log.h"
#include "sim/checkers.h"
#include "sim/swarm.h"

namespace shoal {
namespace {

// Two lives that nothing is synced in, after a good one; `second` is how long the second one lasts. Then the end.
struct Lives {
  std::uint64_t seed = 1;
  RuleId rule = RuleId::kDiloco;
  Duration sync_delay = 4s, second = 3s;
};

// The first rule that is broken; empty = all hold.
std::string live(const Lives& lives) {
  set_log_level(LogLevel::kError);
  SwarmOptions options;
  options.seed = lives.seed;
  options.config = small_config(lives.rule, options.stages, 300);
  Swarm swarm(std::move(options));
  swarm.run_for(3s + lives.seed * 130ms);
  if (swarm.finished()) return "the run was over too early";
  swarm.disk().set_sync_delay(lives.sync_delay);
  swarm.run_for(800ms);
  swarm.kill_launch_process();
  swarm.resume_launch();
  swarm.run_for(lives.second);
  if (const auto broken = check_counting(swarm); !broken.empty()) return "second life: " + broken.front();
  swarm.kill_launch();
  swarm.disk().set_sync_delay(40ms);
  swarm.resume_launch();
  const bool ended = swarm.run_to_end(400s);
  if (const auto broken = check_end(swarm); !broken.empty()) return broken.front();
  if (!ended) return "the run did not end";
  for (const auto& peer : swarm.peers())
    for (const StageStatus& known : swarm.launch()->authority().status())
      if (peer->peer && peer->peer->stage_peer() && peer->peer->report().stage == known.stage &&
          peer->peer->stage_peer()->version() > known.version)
        return "a member is ahead of the authority";
  return {};
}

TEST(PowerTest, WhatAResumedProcessReadHasNoEffectBeforeItIsDurable) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    for (const RuleId rule : {RuleId::kDiloco, RuleId::kAllreduce})
      EXPECT_EQ(live({.seed = seed, .rule = rule}), "") << "seed " << seed << " rule " << static_cast<int>(rule);
}

TEST(PowerTest, OnceItIsDurableTheResumedProcessGoesOn) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed)
    EXPECT_EQ(live({.seed = seed, .sync_delay = 1s, .second = 4s}), "") << "seed " << seed;
}

TEST(PowerTest, AnOlderLogOfTheAuthorityIsToldByNameWithTheWayOut) {
  set_log_level(LogLevel::kError);
  SwarmOptions options;
  options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
  Swarm swarm(std::move(options));
  swarm.run_for(8s);
  const std::vector<std::uint8_t> older = *swarm.disk().durable_content("run/authority.log");
  swarm.run_for(30s);
  swarm.kill_launch();
  swarm.disk().put("run/authority.log", older);
  swarm.resume_launch();
  swarm.run_for(8s);
  for (const StageStatus& stage : swarm.launch()->authority().status()) {
    EXPECT_EQ(stage.serving, 0u);
    EXPECT_FALSE(stage.ahead.empty());
  }
  EXPECT_NE(swarm.launch()->parked_text().find("put the newer log back"), std::string::npos)
      << swarm.launch()->parked_text();
}

}  // namespace
}  // namespace shoal
