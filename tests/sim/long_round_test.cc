// Rounds of more microbatches than a list of a message may have items, and than the trainer's smallest window of ids.
#include <gtest/gtest.h>

#include "common/log.h"
#include "sim/checkers.h"
#include "sim/swarm.h"
#include "transport/limits.h"

namespace shoal {
namespace {

TEST(LongRoundTest, IsSecuredWholeThoughOneMemberHoldsItAll) {
  set_log_level(LogLevel::kError);
  constexpr std::uint64_t kRound = limits::kListMax + 58, kAll = kRound + 250;  // whole inner steps of three
  static_assert(kRound % 3 == 0 && kRound > RunConfig::kIdWindowMin);
  SwarmOptions options;
  options.stages = options.replicas = 1;
  options.config = small_config(RuleId::kDiloco, 1, kAll);
  options.config.pipeline.replicas = 1;
  options.config.pipeline.in_flight = 12;
  options.config.sync.inner_steps = kRound / 3;
  options.config.sync.round_cap_s = 0;  // by targets only
  options.pace = {2ms, 4ms, 6ms, 1ms, 10ms, 1ms};
  Swarm swarm(std::move(options));
  ASSERT_TRUE(swarm.run_to_end(600s)) << swarm.launch()->book().open() << " open, low waits for "
                                      << swarm.launch()->book().waiting_for();
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  EXPECT_EQ(swarm.summary().lost, 0u);
  std::size_t longest = 0;
  for (const EventRecord& e : swarm.events())
    if (e.event == EventKind::kRoundCommit) longest = std::max(longest, e.secured->front().serials.size());
  EXPECT_GE(longest, kRound);
  set_log_level(LogLevel::kInfo);
}

}  // namespace
}  // namespace shoal
