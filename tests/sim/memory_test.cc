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

// Its memory holds no graph while it is `*ended`.
class EndingExecutor final : public IntegerExecutor {
 public:
  EndingExecutor(const StageSpec& spec, std::shared_ptr<StageExecutor*> ended)
      : IntegerExecutor(spec), ended_(std::move(ended)) {}

 protected:
  Result<Computed> compute(const StageInput& input, ArenaRole weights, bool keep_graph) override {
    if (keep_graph && *ended_ == this) return make_error(ErrorCode::kTooLarge, "memory holds no graph");
    return IntegerExecutor::compute(input, weights, keep_graph);
  }

 private:
  const std::shared_ptr<StageExecutor*> ended_;
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

// One that meets it while it pauses rests, is resumed, and leaves when it meets it again.
TEST_P(ScarceMemoryTest, APauseMeanwhileDoesNotHideTheNextOne) {
  SwarmOptions scarce = options();
  scarce.config = small_config(std::get<0>(GetParam()), 3, 10'000'000);
  auto ended = std::make_shared<StageExecutor*>(nullptr);
  scarce.factory = [ended](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
    return {std::make_unique<EndingExecutor>(spec, ended)};
  };
  Swarm swarm(std::move(scarce));
  swarm.run_for(8s);
  const Swarm::HostedPeer& peer = *swarm.peers()[0];
  const auto until = [&](Duration limit, const std::function<bool()>& holds) {
    return swarm.loop().run_until_true(holds, swarm.loop().now() + limit);
  };
  const auto met = [&] {
    return std::ranges::any_of(peer.notices, [](const std::string& line) {
      return line.find("memory does not hold one microbatch at a time") != line.npos;
    });
  };
  for (int turn = 0; turn < 40 && !met(); ++turn) {
    ASSERT_TRUE(until(60s, [&] { return peer.peer->report().phase == PeerPhase::kServing; }));
    swarm.run_for(std::chrono::milliseconds(500 + 37 * turn));
    const std::size_t pauses = peer.pauses.size();
    ASSERT_TRUE(until(60s, [&] { return peer.peer->report().status.live > 0; }));
    peer.peer->set_pause("by its owner");
    *ended = peer.peer->executor();
    ASSERT_TRUE(until(5s, [&] { return peer.pauses.size() > pauses; }));
    *ended = nullptr;
    peer.peer->set_pause({});
  }
  ASSERT_TRUE(met());
  ASSERT_TRUE(until(60s, [&] { return peer.peer->report().phase == PeerPhase::kServing; }));
  EXPECT_FALSE(peer.finished);
  ASSERT_TRUE(until(120s, [&] {
    *ended = peer.peer->executor();  // rounds may end its session, and the next one has another
    return peer.finished;
  }));
  ASSERT_TRUE(peer.error.has_value());
  EXPECT_EQ(peer.error->code, ErrorCode::kTooLarge);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ScarceMemoryTest,
                         testing::Combine(testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                                          testing::Range(std::uint64_t{1}, std::uint64_t{7})));

}  // namespace
}  // namespace shoal
