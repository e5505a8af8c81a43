// Seeds of shoal-sim that broke a rule once, with what they found. Each runs as `shoal-sim --rule R --seed N --seeds 1`
// does; the oldest of them when fewer of a seed's draws were made.
#include <gtest/gtest.h>

#include "sim/scenario.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

struct FoundSeed {
  const char* name;
  RuleId rule;
  std::uint64_t seed;
  double lasting = 0, unreachable = 0;
};

class FoundSeedsTest : public Quiet<testing::TestWithParam<FoundSeed>> {};

TEST_P(FoundSeedsTest, BreaksNoRule) {
  SwarmOptions options;
  options.seed = GetParam().seed;
  options.config = small_config(GetParam().rule, options.stages, 100'000);
  options.dht = true;
  const bool walled = GetParam().unreachable > 0;  // found last
  options.reach.unreachable = GetParam().unreachable;
  if (walled) options.reach.relay_bytes_per_second = kSimRelayBytesPerSecond;
  if (walled)
    be_as_seed_draws(options);
  else if (options.seed % kTightEvery == 0)
    make_tight(options);
  FaultOptions faults;
  faults.lasting = GetParam().lasting;
  faults.nat = faults.relay = walled;
  const ScenarioResult result = run_scenario(std::move(options), faults);
  EXPECT_TRUE(result.broken.empty()) << result.broken.front();
}

constexpr RuleId kA = RuleId::kAllreduce, kD = RuleId::kDiloco;

INSTANTIATE_TEST_SUITE_P(Seeds, FoundSeedsTest,
                         testing::Values(FoundSeed{"APeerBeatOnAfterItsDeviceHadHungInAStep", kA, 2054},
                                         FoundSeed{"APeerBeatOnAfterItsDeviceHadHung", kD, 2054},
                                         FoundSeed{"ARoundWaitedForASessionThatWasOver", kD, 2260},
                                         FoundSeed{"ALostPartLookedLikeAPairThatCannotMeet", kD, 2400},
                                         FoundSeed{"ALostGradientWasWaitedForForEver", kD, 2005},
                                         FoundSeed{"AStoppedLifeToldNobodyWhatAnEarlierOneHadDecided", kD, 1504},
                                         FoundSeed{"ALogThatHadFailedWasFoundOutByTheEndAlone", kA, 94},
                                         FoundSeed{"WhatAGivenUpRunLostWasTakenForAWrongCount", kA, 1118},
                                         FoundSeed{"TheEndDidNotWaitForWhoWasBehind", kD, 13, 0.3},
                                         FoundSeed{"APeerThatGaveUpWasTakenForTheHealedCore", kA, 129, 0.3},
                                         FoundSeed{"ValidationWaitedForStagesThatCannotMeet", kA, 201, 0.3},
                                         FoundSeed{"ALaunchThatIsKilledForGoodIsHealedWithTheCore", kD, 3, 0.3},
                                         FoundSeed{"AHangInAFirstAbandonWasWaitedForFiveMinutes", kA, 28, 0.3},
                                         FoundSeed{"AMemberThatHungSoKeptALivingOneFromItsLastRound", kD, 89, 0.3},
                                         FoundSeed{"ARunEndedBeforeALateLinkHadItsCommits", kD, 10822, 0, 0.6},
                                         FoundSeed{"WhoseLinkIsBadForGoodWasExpectedInTheLastRound", kD, 12, 0.3}),
                         [](const auto& item) { return item.param.name; });

}  // namespace
}  // namespace shoal
