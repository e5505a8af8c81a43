// Peers whose memory ends in the middle of passes: they take fewer microbatches, or leave, and nothing is counted
// twice.
#include <gtest/gtest.h>

#include "sim/checkers.h"
#include "sim/scenario.h"
#include "sim/swarm.h"
#include "stages/integer_executor.h"
#include "tests/sim/heard_lines.h"

namespace shoal {
namespace {

// Its memory holds so many graphs; from the `passes`-th pass on, none.
class ScarceExecutor final : public IntegerExecutor {
 public:
  ScarceExecutor(const StageSpec& spec, std::uint64_t graphs, std::uint64_t passes)
      : IntegerExecutor(spec), graphs_(graphs), passes_(passes) {}

 protected:
  Result<Computed> compute(const StageInput& input, ArenaRole weights, bool keep_graph) override {
    if (keep_graph && (graph_count() >= graphs_ || ++made_ > passes_))
      return make_error(ErrorCode::kTooLarge, "memory holds " + std::to_string(graphs_) + " graphs");
    return IntegerExecutor::compute(input, weights, keep_graph);
  }

 private:
  const std::uint64_t graphs_, passes_;
  std::uint64_t made_ = 0;
};

class ScarceMemoryTest : public testing::TestWithParam<std::tuple<RuleId, std::uint64_t>> {
 protected:
  static SwarmOptions options() {
    SwarmOptions options;
    options.seed = std::get<1>(GetParam());
    options.stages = 3;
    options.replicas = 2;
    options.config = small_config(std::get<0>(GetParam()), 3, 200);
    return options;
  }
};

// Machines of one to three graphs each, which is not known when their credits are set.
TEST_P(ScarceMemoryTest, FewerAreTakenAndNothingIsCountedTwice) {
  const HeardLines heard;
  SwarmOptions scarce = options();
  auto made = std::make_shared<std::uint64_t>(scarce.seed);
  scarce.factory = [made](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
    return {std::make_unique<ScarceExecutor>(spec, 1 + (*made)++ % 3, UINT64_MAX)};
  };
  Swarm swarm(std::move(scarce));
  ASSERT_TRUE(swarm.run_to_end(900s));
  EXPECT_EQ(swarm.summary().committed, 200u);
  EXPECT_EQ(swarm.summary().lost, 0u);
  EXPECT_GE(heard.with("memory ended in a pass: from now on it takes "), 1u);
  for (const std::string& broken : check_end(swarm)) ADD_FAILURE() << broken;
}

TEST_P(ScarceMemoryTest, WhereNotOneFitsThePeerLeavesInOrder) {
  const HeardLines heard;
  SwarmOptions scarce = options();
  auto taken = std::make_shared<bool>(false);
  scarce.factory = [taken](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
    const bool short_of_it = spec.stage.value == 1 && !std::exchange(*taken, true);
    return {std::make_unique<ScarceExecutor>(spec, UINT64_MAX, short_of_it ? 40 : UINT64_MAX)};
  };
  Swarm swarm(std::move(scarce));
  ASSERT_TRUE(swarm.run_to_end(900s));
  EXPECT_EQ(swarm.summary().committed, 200u);
  EXPECT_EQ(swarm.summary().lost, 0u);
  std::size_t left = 0;
  for (const auto& peer : swarm.peers())
    if (peer->error && peer->error->code == ErrorCode::kTooLarge) ++left;
  EXPECT_EQ(left, 1u);
  for (const std::string& broken : check_end(swarm)) ADD_FAILURE() << broken;
}

INSTANTIATE_TEST_SUITE_P(Seeds, ScarceMemoryTest,
                         testing::Combine(testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                                          testing::Range(std::uint64_t{1}, std::uint64_t{7})));

}  // namespace
}  // namespace shoal
