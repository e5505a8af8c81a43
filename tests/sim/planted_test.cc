// Bugs planted on purpose: each must be caught by the checkers within the seeds that the product passes. (Claims that
// never fall only slow a run down, as orphans ask the trainer: tests/router has the case in which they stop it.)
#include <gtest/gtest.h>

#include "common/log.h"
#include "sim/scenario.h"

namespace shoal {
namespace {

struct Planted {
  const char* name;
  bool PlantedBugs::*bug;
  RuleId rule;
};

class PlantedTest : public testing::TestWithParam<Planted> {};

INSTANTIATE_TEST_SUITE_P(Bugs, PlantedTest,
                         testing::Values(Planted{"UndoTwice", &PlantedBugs::undo_twice, RuleId::kDiloco},
                                         Planted{"NoWait", &PlantedBugs::no_wait, RuleId::kDiloco},
                                         Planted{"CommitAtCount", &PlantedBugs::commit_at_count, RuleId::kDiloco},
                                         Planted{"ResetAccumulator", &PlantedBugs::reset_accumulator, RuleId::kDiloco},
                                         Planted{"LateLog", &PlantedBugs::late_log, RuleId::kDiloco},
                                         Planted{"SilentGone", &PlantedBugs::silent_gone, RuleId::kDiloco},
                                         Planted{"ListOnSilence", &PlantedBugs::list_on_silence, RuleId::kDiloco}),
                         [](const auto& item) { return std::string(item.param.name); });

TEST_P(PlantedTest, IsCaught) {
  set_log_level(LogLevel::kError);
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SwarmOptions options;
    options.seed = seed;
    options.config = small_config(GetParam().rule, options.stages, 96);
    options.planted.*GetParam().bug = true;
    const ScenarioResult result = run_scenario(std::move(options), FaultMix{}, 300s);
    if (!result.broken.empty()) {
      RecordProperty("seed", static_cast<int>(seed));
      return;
    }
  }
  FAIL() << GetParam().name << " was not caught within 150 seeds";
}

}  // namespace
}  // namespace shoal
