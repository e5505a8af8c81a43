// Whole stages in virtual time under faults: versions agree, anchors are exactly the sum of what was secured, nothing
// is secured twice.
#include "tests/sync/swarm.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

using test::Swarm;
using test::SwarmOptions;

void expect_none(const std::vector<std::string>& problems, const SwarmOptions& options) {
  EXPECT_TRUE(problems.empty()) << "seed " << options.seed << ", " << options.peers << " peers: " << problems.size()
                                << " problems, first: " << (problems.empty() ? "" : problems[0]);
}

class SwarmRuleTest : public testing::TestWithParam<RuleId> {};

TEST_P(SwarmRuleTest, WithoutFaultsNothingIsLostOrRepeated) {
  for (std::size_t peers = 1; peers <= 4; ++peers) {
    SwarmOptions options;
    options.rule = GetParam();
    options.peers = peers;
    options.faults = false;
    options.faults_for = 30s;
    Swarm swarm(options);
    expect_none(swarm.run(), options);
    EXPECT_GE(swarm.commits.size(), 3u);
    EXPECT_EQ(swarm.secured.size(), swarm.made.size());
    EXPECT_EQ(swarm.fences, 0u);
  }
}

TEST_P(SwarmRuleTest, UnderKillsFreezesBrokenLinksAndRestartsNothingIsCountedTwice) {
  std::uint64_t kills = 0, freezes = 0, breaks = 0, restarts = 0, fences = 0, commits = 0, abandoned = 0, behind = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    SwarmOptions options;
    options.seed = seed;
    options.rule = GetParam();
    options.peers = 2 + seed % 4;
    Swarm swarm(options);
    expect_none(swarm.run(), options);
    kills += swarm.kills;
    freezes += swarm.freezes;
    breaks += swarm.breaks;
    restarts += swarm.restarts;
    fences += swarm.fences;
    commits += swarm.commits.size();
    abandoned += swarm.abandoned;
    behind += swarm.fell_behinds;
  }
  // A fault that never happens proves nothing.
  for (const std::uint64_t count : {kills, freezes, breaks, restarts, fences, commits, abandoned, behind})
    EXPECT_GT(count, 20u);
  std::printf(
      "kills %llu, freezes %llu, broken links %llu, restarts %llu, fenced %llu, rounds %llu, abandoned %llu, fell "
      "behind %llu\n",
      static_cast<unsigned long long>(kills), static_cast<unsigned long long>(freezes),
      static_cast<unsigned long long>(breaks), static_cast<unsigned long long>(restarts),
      static_cast<unsigned long long>(fences), static_cast<unsigned long long>(commits),
      static_cast<unsigned long long>(abandoned), static_cast<unsigned long long>(behind));
}

TEST_P(SwarmRuleTest, TheSameSeedGivesTheSameTrace) {
  SwarmOptions options;
  options.rule = GetParam();
  options.seed = 7;
  Swarm first(options), second(options);
  first.run();
  second.run();
  EXPECT_EQ(first.trace_hash(), second.trace_hash());
}

INSTANTIATE_TEST_SUITE_P(Rules, SwarmRuleTest, testing::Values(RuleId::kDiloco, RuleId::kAllreduce),
                         [](const auto& info) { return info.param == RuleId::kDiloco ? "Diloco" : "Allreduce"; });

}  // namespace
}  // namespace shoal
