// Ctrl-C at the launching process while nobody of a stage is left: the run ends within a stated time, and says what
// goes with the stage.
#include <gtest/gtest.h>

#include <algorithm>

#include "events/audit/audit.h"
#include "events/lost_causes.h"
#include "sim/checkers.h"
#include "stages/integer_executor.h"
#include "tests/quiet_log.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

constexpr Duration kStopPatience = 30s;  // LaunchOptions' own
constexpr Duration kLastSteps = 5s;      // fencing, two logs, END

class StopTest : public Quiet<testing::TestWithParam<RuleId>> {
 protected:
  static SwarmOptions options(bool save = false) {
    SwarmOptions options;
    options.config = small_config(GetParam(), options.stages, 100'000);
    options.save = save;
    return options;
  }
  // The bound that docs/CLI.md states, from the Ctrl-C on, when the peers die with it.
  static Duration bound(const Swarm& swarm) { return swarm.options().config.membership() + kStopPatience + kLastSteps; }
};

std::vector<std::size_t> peers_of(const Swarm& swarm, StageId stage) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < swarm.peers().size(); ++i)
    if (swarm.peers()[i]->peer->report().stage == stage) found.push_back(i);
  return found;
}

// END has left then, and reached nobody.
bool run_until_end_is_written(Swarm& swarm) {
  std::size_t read = 0;
  const auto written = [&] {
    while (read < swarm.events().size())
      if (swarm.events()[read++].event == EventKind::kEnd) return true;
    return false;
  };
  return swarm.loop().run_until_true(written, swarm.loop().now() + 60s);
}

// With the run, and of sessions that were not over.
std::size_t lost_of_the_living(const Swarm& swarm) {
  CountingBooks books;
  books.read(swarm.events());
  return static_cast<std::size_t>(
      std::count_if(swarm.events().begin(), swarm.events().end(), [&](const SimEvent& event) {
        return event.event == EventKind::kLost && event.cause == kLostWithoutStage &&
               !books.over(event.entry_name->session);
      }));
}

TEST_P(StopTest, WhenAStageIsGoneForGoodTheRunEndsWithinItsBoundAndNamesWhatIsLost) {
  for (std::uint16_t stage = 0; stage < 3; ++stage) {
    SCOPED_TRACE(stage);
    Swarm swarm(options());
    swarm.run_for(8s);
    const auto gone = peers_of(swarm, StageId(stage));
    ASSERT_EQ(gone.size(), 2u);
    for (const std::size_t peer : gone) swarm.kill_peer(peer);
    swarm.stop_launch();
    ASSERT_TRUE(run_until_finished(swarm, bound(swarm))) << swarm.launch()->parked_text();
    EXPECT_FALSE(swarm.launch_error());
    EXPECT_EQ(told(swarm, "stage " + std::to_string(stage) + " has no serving peer: the run ends without it in 30 s"),
              1u);
    EXPECT_EQ(told(swarm, "ending without stage " + std::to_string(stage)), 1u);
    EXPECT_EQ(swarm.summary().issued, swarm.summary().committed + swarm.summary().unfinished);
    ASSERT_TRUE(swarm.run_to_end(30s)) << "the living heard END";
    std::vector<std::string> broken = check_end(swarm);  // whatever was committed is secured or named lost
    std::erase_if(broken, [](const std::string& line) { return line.find("are unfinished") != std::string::npos; });
    EXPECT_EQ(broken, std::vector<std::string>{});
  }
}

// Until END is there they serve on with what was named lost. That is neither counted twice nor a false line.
TEST_P(StopTest, WhatTheLivingHoldWhenTheRunIsGivenUpIsLostByNameWhileTheyServeOn) {
  std::size_t of_the_living = 0;
  for (const std::uint64_t more : {1u, 4u, 6u}) {  // committed microbatches of a step of eight that is not whole
    SCOPED_TRACE(more);
    std::map<std::string, std::string> files;
    SwarmOptions given = options();
    given.evidence = &files;
    Swarm swarm(std::move(given));
    ASSERT_TRUE(swarm.loop().run_until_true([&] { return swarm.launch()->book().committed() >= 40 + more; },
                                            swarm.loop().now() + 60s));
    for (const std::size_t peer : peers_of(swarm, StageId(1))) swarm.kill_peer(peer);
    swarm.stop_launch();
    ASSERT_TRUE(run_until_end_is_written(swarm));
    of_the_living += lost_of_the_living(swarm);
    EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
    ASSERT_TRUE(swarm.run_to_end(30s));
    const AuditReport report = audit_texts(files);
    EXPECT_TRUE(report.violations.empty()) << audit_table(report);  // a killed peer's last lines may be missing
  }
  if (GetParam() == RuleId::kAllreduce) {  // under diloco rounds go on by their cap, and take it in before that
    EXPECT_GT(of_the_living, 0u);
  }
}

void cut_stages(Swarm& swarm, StageId one, StageId other) {
  for (const std::size_t a : peers_of(swarm, one))
    for (const std::size_t b : peers_of(swarm, other)) {
      swarm.network().block(swarm.peers()[a]->address, swarm.peers()[b]->address, true);
      swarm.network().block(swarm.peers()[b]->address, swarm.peers()[a]->address, true);
    }
}

// Everybody lives, and rounds need no next stage: also a step that is not whole is secured.
TEST_P(StopTest, WhatIsCommittedIsSecuredThoughOneStageReachesNobodyOfTheNext) {
  for (const std::uint64_t more : {1u, 4u, 6u}) {  // committed microbatches of a step of eight
    SCOPED_TRACE(more);
    Swarm swarm(options());
    ASSERT_TRUE(swarm.loop().run_until_true([&] { return swarm.launch()->book().committed() >= 40 + more; },
                                            swarm.loop().now() + 60s));
    cut_stages(swarm, StageId(0), StageId(1));
    swarm.stop_launch();
    ASSERT_TRUE(run_until_finished(swarm, 2 * bound(swarm))) << swarm.launch()->parked_text();
    EXPECT_FALSE(swarm.launch_error());
    EXPECT_EQ(told(swarm, "ending although stage 0 peer"), 1u);
    EXPECT_GT(swarm.summary().unfinished, 0u);
    EXPECT_EQ(swarm.summary().lost, 0u);
    EXPECT_FALSE(swarm.summary().validation_loss);
    ASSERT_TRUE(swarm.run_to_end(30s)) << "all heard END";
    std::vector<std::string> broken = check_end(swarm);
    std::erase_if(broken, [](const std::string& line) { return line.find("are unfinished") != std::string::npos; });
    EXPECT_EQ(broken, std::vector<std::string>{});
  }
}

// From a moment on no forward of it comes to anything, though it serves and answers.
class Failing final : public IntegerExecutor {
 public:
  Failing(const StageSpec& spec, std::shared_ptr<const bool> fails) : IntegerExecutor(spec), fails_(std::move(fails)) {}
  Result<ForwardOutput> forward(const ForwardInput& input, FrameCoder& coder) override {
    if (*fails_) return make_error(ErrorCode::kNonFinite, "an activation is not finite");
    return IntegerExecutor::forward(input, coder);
  }

 private:
  std::shared_ptr<const bool> fails_;
};

TEST_P(StopTest, APersonWhoStopsARunWhosePeersAllServeAndBringNothingWaitsNoLongerThanItsBound) {
  const auto fails = std::make_shared<bool>(false);
  SwarmOptions with = options();
  with.factory = [fails](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
    return std::unique_ptr<StageExecutor>(std::make_unique<Failing>(spec, fails));
  };
  Swarm swarm(std::move(with));
  swarm.run_for(8s);
  *fails = true;
  swarm.run_for(2s);
  swarm.stop_launch();
  ASSERT_TRUE(run_until_finished(swarm, 2 * bound(swarm))) << swarm.launch()->parked_text();
  EXPECT_FALSE(swarm.launch_error());
  EXPECT_EQ(told(swarm, "ending although nothing came in for"), 1u);
  EXPECT_GT(swarm.summary().unfinished, 0u);
  EXPECT_FALSE(swarm.summary().validation_loss);
  EXPECT_EQ(swarm.summary().lost, 0u) << "what was committed is secured all the same";
}

// From a moment on its losses are those of a model that diverged.
class Diverging final : public IntegerExecutor {
 public:
  Diverging(const StageSpec& spec, std::shared_ptr<const bool> fails)
      : IntegerExecutor(spec), fails_(std::move(fails)) {}
  Result<ForwardOutput> forward(const ForwardInput& input, FrameCoder& coder) override {
    auto output = IntegerExecutor::forward(input, coder);
    if (*fails_ && output.ok()) output->loss_sum = 1e9 * static_cast<double>(output->targets);
    return output;
  }

 private:
  std::shared_ptr<const bool> fails_;
};

// Without a Ctrl-C it would stand for ever.
TEST_P(StopTest, ARunWhosePeersAllRefuseWhatTheyComputeEndsByItselfAndNamesMicrobatchStageAndOption) {
  for (const bool save : {false, true}) {
    SCOPED_TRACE(save);
    const auto fails = std::make_shared<bool>(false);
    const StageId stage(save ? 2 : 1);
    const std::string cause = save ? "the loss is beyond any of such a model" : "an activation is not finite";
    SwarmOptions with = options(save);
    with.factory = [fails, stage, save](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
      if (spec.stage != stage) return std::unique_ptr<StageExecutor>(std::make_unique<IntegerExecutor>(spec));
      if (save) return std::unique_ptr<StageExecutor>(std::make_unique<Diverging>(spec, fails));
      return std::unique_ptr<StageExecutor>(std::make_unique<Failing>(spec, fails));
    };
    Swarm swarm(std::move(with));
    swarm.run_for(8s);
    *fails = true;
    ASSERT_TRUE(run_until_finished(swarm, 2 * bound(swarm))) << swarm.launch()->parked_text();
    ASSERT_TRUE(swarm.launch_error());
    EXPECT_EQ(swarm.launch_error()->code, ErrorCode::kNonFinite);
    const std::string& said = swarm.launch_error()->message;
    for (const std::string& part : {"stage " + std::to_string(stage.value) + " refuses microbatch ",
                                    cause + " (2 of its 2 peers", std::string("[optimizer] lr")})
      EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_EQ(told(swarm, "The run ends in 30 s"), 1u);
    EXPECT_GE(told(swarm, "refuses microbatch"), 2u);
    ASSERT_EQ(swarm.summary().refusals.size(), 1u);
    EXPECT_EQ(swarm.summary().refusals.begin()->first, std::pair(stage, cause));
    EXPECT_EQ(swarm.summary().lost, 0u) << "what was committed is secured all the same";
    EXPECT_EQ(swarm.states().size(), save ? swarm.options().stages : 0u);
    ASSERT_TRUE(swarm.run_to_end(30s)) << "all heard END";
  }
}

// Its forwards fail, those of the other replica do not.
TEST_P(StopTest, OnePeerThatRefusesAllIsSaidAndTheRunGoesOn) {
  const auto fails = std::make_shared<bool>(true), holds = std::make_shared<bool>(false);
  int made = 0;
  SwarmOptions with = options();
  with.factory = [&](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
    return std::unique_ptr<StageExecutor>(std::make_unique<Failing>(spec, made++ == 0 ? fails : holds));
  };
  Swarm swarm(std::move(with));
  swarm.run_for(90s);
  EXPECT_FALSE(swarm.finished());
  EXPECT_GE(told(swarm, "refuses microbatch"), 1u);
  EXPECT_EQ(told(swarm, "The run ends in"), 0u);
  EXPECT_GT(swarm.launch()->book().committed(), 100u);
}

// Without a Ctrl-C: all is trained and secured, and a figure is no reason to wait for ever.
TEST_P(StopTest, ARunWhoseStagesPartInValidationEndsWithoutItsFigure) {
  SwarmOptions with = options();
  with.config = small_config(GetParam(), with.stages, 64);
  Swarm swarm(with);
  ASSERT_TRUE(swarm.loop().run_until_true([&] { return told(swarm, "validating") > 0; }, swarm.loop().now() + 60s));
  cut_stages(swarm, StageId(1), StageId(2));
  ASSERT_TRUE(swarm.run_to_end(2 * bound(swarm)));
  EXPECT_EQ(told(swarm, "nothing is validated"), 1u);
  EXPECT_FALSE(swarm.summary().validation_loss);
  EXPECT_EQ(swarm.summary().committed, 64u);
  EXPECT_EQ(swarm.summary().lost, 0u);
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
}

TEST_P(StopTest, AHolderThatComesBackInTimeEndsTheRunWithNothingUnfinished) {
  Swarm swarm(options());
  swarm.run_for(8s);
  const auto away = peers_of(swarm, StageId(1));
  ASSERT_EQ(away.size(), 2u);
  for (const std::size_t peer : away) swarm.freeze_peer(peer);
  swarm.stop_launch();
  swarm.run_for(swarm.options().config.membership() + kStopPatience / 2);
  EXPECT_FALSE(swarm.finished());
  for (const std::size_t peer : away) swarm.resume_peer(peer);
  ASSERT_TRUE(swarm.run_to_end(120s));
  EXPECT_EQ(told(swarm, "ending without"), 0u);
  EXPECT_EQ(swarm.summary().unfinished, 0u);
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
}

// A person who waits learns for what, and what it would cost not to.
TEST_P(StopTest, WhatAnEndThatTakesLongWaitsForIsSaidWithThePriceOfNotWaiting) {
  Swarm swarm(options());
  swarm.run_for(8s);
  const auto away = peers_of(swarm, StageId(1));
  for (const std::size_t peer : away) swarm.freeze_peer(peer);
  swarm.stop_launch();
  swarm.run_for(RunEnd::kSettleTime - 1s);
  EXPECT_EQ(told(swarm, "after Ctrl-C"), 0u);
  swarm.run_for(2s);
  EXPECT_EQ(told(swarm, "not ended 10 s after Ctrl-C: waiting for " + std::to_string(swarm.launch()->book().open()) +
                            " microbatches that are under way"),
            1u)
      << swarm.notices().back();
  EXPECT_EQ(told(swarm, "A second Ctrl-C stops at once and costs this"), 1u);
  swarm.run_for(8s);
  EXPECT_EQ(told(swarm, "after Ctrl-C"), 1u);
  swarm.run_for(2s);
  EXPECT_EQ(told(swarm, "not ended 20 s after Ctrl-C"), 1u) << "and once more when the time has doubled";
  EXPECT_FALSE(swarm.launch()->ended());
  for (const std::size_t peer : away) swarm.resume_peer(peer);
  ASSERT_TRUE(swarm.run_to_end(120s));
}

// END would take the other stages' states with it.
TEST_P(StopTest, ARunThatShallBeSavedStopsWithoutEndingAndItsLivingPeersKeepTheirStates) {
  Swarm swarm(options(true));
  swarm.run_for(8s);
  const auto gone = peers_of(swarm, StageId(1));
  for (const std::size_t peer : gone) swarm.kill_peer(peer);
  swarm.stop_launch();
  ASSERT_TRUE(run_until_finished(swarm, bound(swarm)));
  ASSERT_TRUE(swarm.launch_error());
  EXPECT_EQ(swarm.launch_error()->code, ErrorCode::kNoPeer);
  EXPECT_NE(swarm.launch_error()->message.find("stage 1"), std::string::npos) << swarm.launch_error()->message;
  EXPECT_NE(swarm.launch_error()->message.find("--resume run"), std::string::npos) << swarm.launch_error()->message;
  swarm.run_for(5s);
  for (const auto& peer : swarm.peers()) EXPECT_FALSE(peer->finished);
}

// It takes no microbatches any more, but its state can still be had.
TEST_P(StopTest, ALeavingHoldersStateIsSavedAndNotCalledLost) {
  Swarm swarm(options(true));
  swarm.run_for(8s);
  const auto of_stage = peers_of(swarm, StageId(1));
  ASSERT_EQ(of_stage.size(), 2u);
  swarm.kill_peer(of_stage[0]);
  swarm.run_for(swarm.options().config.membership() + 2s);
  swarm.peers()[of_stage[1]]->peer->leave();
  swarm.run_for(2s);
  swarm.stop_launch();
  ASSERT_TRUE(run_until_finished(swarm, bound(swarm))) << swarm.launch()->parked_text();
  EXPECT_FALSE(swarm.launch_error()) << swarm.launch_error()->message;
  EXPECT_EQ(swarm.states().size(), swarm.options().stages);
  EXPECT_EQ(told(swarm, "ending without stage 1: its last holder is leaving"), 1u);
}

INSTANTIATE_TEST_SUITE_P(Rules, StopTest, testing::Values(RuleId::kDiloco, RuleId::kAllreduce),
                         [](const auto& info) { return info.param == RuleId::kDiloco ? "diloco" : "allreduce"; });

}  // namespace
}  // namespace shoal
