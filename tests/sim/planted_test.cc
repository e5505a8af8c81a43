// Bugs planted on purpose: each must be caught by the checkers within the seeds that the product passes. Not here,
// since whole swarms live with them, and found in tests/router: claims that never fall and COMMITs that are not
// repeated only slow a run down, as orphans ask the trainer; an abort of what others claim is counted right and lost,
// which faults may cause too; a second entry of a microbatch ends the process at a check of the courier's.
#include <gtest/gtest.h>

#include <cstdio>

#include "common/log.h"
#include "sim/scenario.h"

namespace shoal {
namespace {

constexpr std::uint64_t kSeedsMax = 200;  // as tests/sim/faults_test.cc

struct Planted {
  const char* name;
  bool PlantedBugs::*bug;
};

class PlantedTest : public testing::TestWithParam<Planted> {};

INSTANTIATE_TEST_SUITE_P(Bugs, PlantedTest,
                         testing::Values(Planted{"UndoTwice", &PlantedBugs::undo_twice},
                                         Planted{"NoWait", &PlantedBugs::no_wait},
                                         Planted{"CommitAtCount", &PlantedBugs::commit_at_count},
                                         Planted{"ResetAccumulator", &PlantedBugs::reset_accumulator},
                                         Planted{"LateLog", &PlantedBugs::late_log},
                                         Planted{"SilentGone", &PlantedBugs::silent_gone},
                                         Planted{"ListOnSilence", &PlantedBugs::list_on_silence}),
                         [](const auto& item) { return std::string(item.param.name); });

TEST_P(PlantedTest, IsCaught) {
  set_log_level(LogLevel::kError);
  for (std::uint64_t seed = 1; seed <= kSeedsMax; ++seed) {
    SwarmOptions options;
    options.seed = seed;
    options.config = small_config(RuleId::kDiloco, options.stages, 96);
    options.planted.*GetParam().bug = true;
    const ScenarioResult result = run_scenario(std::move(options), FaultMix{}, 300s);
    if (!result.broken.empty()) {
      std::printf("%s: seed %llu, %.2f virtual s: %s\n", GetParam().name, static_cast<unsigned long long>(seed),
                  result.virtual_seconds, result.broken.front().c_str());
      RecordProperty("seed", static_cast<int>(seed));
      return;
    }
  }
  FAIL() << GetParam().name << " was not caught within " << kSeedsMax << " seeds";
}

}  // namespace
}  // namespace shoal
