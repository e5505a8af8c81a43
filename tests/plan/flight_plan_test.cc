// What late gradients are expected to cost, and how many microbatches in flight that leaves.
#include "runtime/plan/flight_plan.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace shoal {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kTargets = 64;  // of a microbatch

// Inner steps of `window` microbatches of each replica.
RunConfig config_of(std::uint16_t stages, std::uint16_t replicas, std::uint64_t window, const std::string& more = "") {
  auto config = parse_config("[model]\nlayers = " + std::to_string(stages) +
                                 "\ndim = 32\nheads = 4\npositions = 64\n[data]\npath = \"text.bin\"\nsequences = 1\n"
                                 "[end]\ntokens = 1000000\n" +
                                 more,
                             "run.toml");
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message);
  config->pipeline.stages = stages;
  config->pipeline.replicas = replicas;
  config->sync.inner_batch = window * kTargets;
  config->sync.microbatches_per_step = window * replicas;
  return *config;
}

FlightRow row_of(const FlightPlan& plan, std::uint64_t in_flight) {
  for (const FlightRow& row : plan.rows)
    if (row.in_flight == in_flight) return row;
  ADD_FAILURE() << "no row of " << in_flight;
  return {};
}

TEST(FlightPlanTest, DelaysFollowTheShareOfAWindowThatIsInFlight) {
  const auto delays = [](RunConfig config) { return row_of(plan_flight(config), 8).delays; };
  RunConfig config = config_of(4, 1, 16);
  const auto half = ElementsAre(DoubleNear(4 / 9.0, 1e-12), DoubleNear(3.5 / 9, 1e-12), DoubleNear(3 / 9.0, 1e-12),
                                DoubleNear(2.5 / 9, 1e-12));
  EXPECT_THAT(delays(config), half);
  EXPECT_THAT(delays(config_of(4, 2, 8)), half) << "of a step of all replicas";
  config.sync.rule = RuleId::kAllreduce;
  EXPECT_THAT(delays(config), half);
  config.sync.microbatches_per_step = 2;
  EXPECT_THAT(delays(config), ElementsAre(1.0, 1.0, 1.0, 1.0)) << "the step after the next is not issued";
  config.sync.mode = SyncMode::kDrain;
  EXPECT_THAT(delays(config), ElementsAre(0.0, 0.0, 0.0, 0.0));
}

TEST(FlightPlanTest, AutoFillsThePipeWhereThatCostsLittle) {
  const RunConfig config = config_of(4, 2, 32);
  EXPECT_EQ(in_flight_of(config), 16u) << "2 x stages x replicas";
  const FlightPlan plan = plan_flight(config);
  EXPECT_EQ(plan.window, 64u);
  EXPECT_EQ(plan.fill, 16u);
  EXPECT_EQ(plan.automatic, 16u);
  EXPECT_THAT(plan.reason, HasSubstr("16 fill the pipe"));
  EXPECT_EQ(plan.warning, std::nullopt);
  EXPECT_EQ(row_of(plan, 16).pipe_use, 1);
  EXPECT_EQ(row_of(plan, 4).pipe_use, 0.25);
  EXPECT_LE(row_of(plan, 16).price, kPriceBorne);
}

TEST(FlightPlanTest, AutoTakesNoMoreThanThePriceAllowsAndOneAReplicaAtLeast) {
  for (const std::uint64_t window : {1, 2, 4, 8, 16, 64}) {
    for (const std::uint16_t replicas : {1, 2, 3}) {
      const RunConfig config = config_of(8, replicas, window);
      const FlightPlan plan = plan_flight(config);
      const std::uint64_t taken = in_flight_of(config);
      EXPECT_EQ(plan.automatic, taken);
      EXPECT_EQ(taken % replicas, 0u);
      EXPECT_LE(taken, plan.fill);
      const FlightRow row = row_of(plan, taken);
      if (taken > replicas) {
        EXPECT_LE(row.price, kPriceBorne) << window << " x " << replicas;
      }
      RunConfig more = config;
      more.pipeline.in_flight = static_cast<std::uint32_t>(taken + replicas);
      const FlightRow next = row_of(plan_flight(more), taken + replicas);
      EXPECT_TRUE(taken == plan.fill || next.price > kPriceBorne || next.time >= row.time) << window << ", " << taken;
    }
  }
  EXPECT_LT(in_flight_of(config_of(8, 1, 4)), 16u) << "else nothing above was decided by the price";
}

TEST(FlightPlanTest, AutoFillsThePipeWhereNothingIsLateOrLearned) {
  RunConfig config = config_of(8, 2, 1);
  ASSERT_LT(in_flight_of(config), 32u);
  config.executor.kind = ExecutorKind::kPaced;
  EXPECT_EQ(in_flight_of(config), 32u);
  EXPECT_THAT(plan_flight(config).reason, HasSubstr("learns nothing"));
  config.executor.kind = ExecutorKind::kTorch;
  config.sync.rule = RuleId::kAllreduce;
  config.sync.mode = SyncMode::kDrain;
  EXPECT_EQ(in_flight_of(config), 32u);
  EXPECT_THAT(plan_flight(config).reason, HasSubstr("no gradient is late"));
}

TEST(FlightPlanTest, WhetherGradientsAreLateHangsOnTheModeAlone) {
  RunConfig config = config_of(8, 2, 1);
  EXPECT_TRUE(config.gradients_late());
  config.pipeline.in_flight = 2;
  EXPECT_TRUE(config.gradients_late()) << "one a replica, and one replica may have both";
  config.sync.mode = SyncMode::kDrain;
  EXPECT_FALSE(config.gradients_late());
}

// Its inner step closes at the microbatch that brings it to inner_batch targets.
TEST(FlightPlanTest, ABegunMicrobatchOfAReplicasWindowCountsWhole) {
  RunConfig config = config_of(2, 4, 1);
  config.sync.inner_batch = kTargets * 3 / 2;
  EXPECT_EQ(config.microbatches_of_step(0), 6u) << "of which no four replicas make a step each";
  EXPECT_EQ(plan_flight(config).window, 8u);
  config.sync.warm_steps = 1;
  config.sync.microbatches_per_step = 7;
  EXPECT_EQ(plan_flight(config).window, 7u) << "a warm step is of all replicas";
}

TEST(FlightPlanTest, TellsWhereAutoTakesLessThanFillsThePipe) {
  RunConfig config = config_of(8, 1, 4);
  const FlightPlan plan = plan_flight(config);
  ASSERT_LT(plan.automatic, plan.fill);
  const auto notice = pipe_notice(config);
  ASSERT_TRUE(notice);
  const std::string use = std::to_string(std::lround(100 * row_of(plan, plan.automatic).pipe_use));
  EXPECT_THAT(*notice,
              AllOf(HasSubstr(plan.reason), HasSubstr("at about " + use + " % of its use"),
                    HasSubstr("HINT: in RUN.toml [sync] inner_batch = "), HasSubstr("[pipeline] in_flight = 16 ("),
                    HasSubstr("`shoal plan RUN.toml` shows the choice")));
  config = config_of(16, 1, 4);
  config.schedule.warmup_tokens = 0;
  config.end.tokens = 200 * 4 * kTargets;  // few steps: a gradient that is one step late costs much
  config.sync.rule = RuleId::kAllreduce;
  const auto of_steps = pipe_notice(config);
  ASSERT_TRUE(of_steps);
  EXPECT_THAT(*of_steps, HasSubstr("in RUN.toml [sync] microbatches_per_step = "));
  config = config_of(8, 1, 4);
  config.pipeline.in_flight = 1;
  EXPECT_EQ(pipe_notice(config), std::nullopt) << "somebody wants it so";
  EXPECT_EQ(pipe_notice(config_of(4, 2, 32)), std::nullopt) << "it is full";
}

// What the first line of a filling sets.
std::uint64_t number_of(const std::string& line, const std::string& key) {
  EXPECT_TRUE(line.starts_with(key + " = ")) << line;
  return std::stoull(line.substr(key.size() + 3));
}

TEST(FlightPlanTest, TheOptionsToSetFillThePipeAndNoSmallerStepDoes) {
  const RunConfig config = config_of(8, 2, 2);
  const FlightPlan plan = plan_flight(config);
  ASSERT_LT(plan.automatic, plan.fill);
  ASSERT_EQ(plan.fillings.size(), 2u);
  const PipeFilling &steps = plan.fillings[0], &more = plan.fillings[1];
  ASSERT_EQ(steps.lines.size(), 1u);
  RunConfig changed = config;
  changed.sync.inner_batch = number_of(steps.lines[0], "[sync] inner_batch");
  EXPECT_EQ(in_flight_of(changed), plan.fill);
  EXPECT_EQ(steps.in_flight, plan.fill);
  const FlightRow then = row_of(plan_flight(changed), plan.fill);
  EXPECT_EQ(steps.pipe_use, then.pipe_use);
  EXPECT_GT(steps.pipe_use, row_of(plan, plan.automatic).pipe_use);
  EXPECT_EQ(steps.price, then.price);
  EXPECT_LE(steps.price, kPriceBorne);
  EXPECT_EQ(steps.steps, config.end.tokens / (2 * changed.sync.inner_batch));
  changed.sync.inner_batch -= kTargets;
  EXPECT_LT(in_flight_of(changed), plan.fill) << "the smallest";
  EXPECT_TRUE(plan_flight(changed).fillings.size() > 0);

  changed = config;
  ASSERT_EQ(more.lines.size(), 1u);
  changed.pipeline.in_flight = static_cast<std::uint32_t>(number_of(more.lines[0], "[pipeline] in_flight"));
  EXPECT_EQ(*changed.pipeline.in_flight.given, plan.fill);
  const FlightRow full = row_of(plan_flight(changed), plan.fill);
  EXPECT_EQ(more.pipe_use, full.pipe_use);
  EXPECT_EQ(more.price, full.price);
  EXPECT_GT(more.price, steps.price) << "gradients come later";
  EXPECT_TRUE(plan_flight(changed).fillings.empty()) << "somebody wants it so";
}

TEST(FlightPlanTest, GlobalStepsAreMadeLargerByTheirOwnKeyAndWarmOnesWithTheOthers) {
  RunConfig config = config_of(8, 1, 2);
  config.schedule.warmup_tokens = 0;
  config.end.tokens = 200 * 2 * kTargets;
  config.sync.rule = RuleId::kAllreduce;
  config.sync.warm_steps = 0;
  const auto of_steps = pipe_fillings(config);
  ASSERT_FALSE(of_steps.empty());
  ASSERT_EQ(of_steps[0].lines.size(), 1u);
  RunConfig changed = config;
  changed.sync.microbatches_per_step = number_of(of_steps[0].lines[0], "[sync] microbatches_per_step");
  EXPECT_EQ(in_flight_of(changed), plan_flight(config).fill);

  config = config_of(8, 1, 2);
  config.sync.warm_steps = 10;
  config.sync.microbatches_per_step = 3;
  const auto of_both = pipe_fillings(config);
  ASSERT_FALSE(of_both.empty());
  ASSERT_EQ(of_both[0].lines.size(), 2u) << "the smaller of both kinds of step decides";
  changed = config;
  changed.sync.inner_batch = number_of(of_both[0].lines[0], "[sync] inner_batch");
  changed.sync.microbatches_per_step = number_of(of_both[0].lines[1], "[sync] microbatches_per_step");
  EXPECT_EQ(in_flight_of(changed), plan_flight(config).fill);
}

TEST(FlightPlanTest, AFullPipeHasNothingToPasteAndFewStepsAreNamed) {
  EXPECT_TRUE(pipe_fillings(config_of(4, 2, 32)).empty());
  EXPECT_THAT(text_of(PipeFilling{.lines = {}, .in_flight = 16, .pipe_use = 0.87, .price = 0.021, .steps = 320}),
              "pipe 87 %, loss + 2.1 %, 320 steps");
  EXPECT_THAT(text_of(PipeFilling{.lines = {}, .in_flight = 16, .pipe_use = 1, .price = 0, .steps = 20}),
              HasSubstr("20 steps: fewer than 300 learn visibly less"));
}

TEST(FlightPlanTest, ValidationFillsThePipeHoweverFewTrain) {
  RunConfig config = config_of(8, 2, 1);
  ASSERT_LT(in_flight_of(config), 32u);
  EXPECT_EQ(evaluations_in_flight(config), 32u);
  config.pipeline.in_flight = 1;
  EXPECT_EQ(evaluations_in_flight(config), 32u);
  config.pipeline.in_flight = 64;
  EXPECT_EQ(evaluations_in_flight(config), 64u);
}

// Of a full pipe whose gradients are never late.
TEST(FlightPlanTest, TimeIsThatOfTheSlowerPipeAndOfTheTokensThatMakeUpForThePrice) {
  RunConfig config = config_of(4, 1, 16, "[pipeline]\nin_flight_ramp = []\n");
  const FlightRow half = row_of(plan_flight(config), 4);
  EXPECT_NEAR(half.time, 2 * std::pow(1 + half.price, 1 / kLossPerToken), 1e-9);
  config.pipeline.in_flight_ramp = std::vector<double>{0.5, 0.5};  // 4 in the first half, 8 in the other
  const FlightRow ramped = row_of(plan_flight(config), 8);
  EXPECT_NEAR(1 / ramped.pipe_use, (2 + 1) / 2.0, 1e-12);
  config.pipeline.in_flight_ramp = std::vector<double>{0, 1};
  double steps = 0;  // the line from 4 to 8 in small steps
  for (int i = 0; i < 10000; ++i) steps += 8 / (4 + 4 * (i + 0.5) / 10000) / 10000;
  EXPECT_NEAR(1 / row_of(plan_flight(config), 8).pipe_use, steps, 1e-6);
}

TEST(FlightPlanTest, WarnsOfWhatCostsMuchAndNamesTheKeyThatRepairsIt) {
  RunConfig config = config_of(4, 1, 8);
  EXPECT_EQ(price_warning(config), std::nullopt);
  config.pipeline.in_flight = 64;
  const auto many = price_warning(config);
  ASSERT_TRUE(many);
  EXPECT_THAT(*many, AllOf(HasSubstr("with 64 microbatches in flight"), HasSubstr("% of the validation loss"),
                           HasSubstr("HINT: [pipeline] in_flight = \"auto\" (")));
  EXPECT_EQ(plan_flight(config).warning, many);
  config.pipeline.in_flight = 12;
  config.optimizer.look_ahead = 0.0;
  const auto plain = price_warning(config);
  ASSERT_TRUE(plain);
  EXPECT_THAT(*plain, HasSubstr("HINT: [optimizer] look_ahead = \"auto\"")) << "it costs no time, so it comes first";
  config = config_of(4, 1, 2);
  config.end.tokens = 30000;  // few steps, in which the loss falls fast
  config.sync.rule = RuleId::kAllreduce;
  config.sync.microbatches_per_step = 2;
  config.optimizer.look_ahead = 0.0;
  config.pipeline.in_flight_ramp = std::vector<double>{};
  config.pipeline.in_flight = 64;
  EXPECT_TRUE(price_warning(config));
  config.sync.mode = SyncMode::kDrain;
  EXPECT_EQ(price_warning(config), std::nullopt) << "nothing is late";
}

// One microbatch makes a step of all: however few are in flight, some are late.
TEST(FlightPlanTest, WhereNoNumberIsCheapItNamesTheSizeOfAStep) {
  RunConfig config = config_of(2, 4, 1, "[sync]\nwarm_steps = 1\n");
  config.sync.microbatches_per_step = 1;
  EXPECT_EQ(in_flight_of(config), 4u);
  EXPECT_THAT(plan_flight(config).reason,
              AllOf(HasSubstr("4, one a replica"), HasSubstr("[sync] microbatches_per_step makes")));
  const auto warning = price_warning(config);
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, HasSubstr("HINT: [sync] microbatches_per_step = "));
}

// The trip of one microbatch, and two passes of each that follows; a full pipe takes two for each.
TEST(SyncModeTest, AStepThatIsWaitedForUsesThePipeAsItsTripAllows) {
  for (const std::uint16_t replicas : {1, 2}) {
    for (const std::uint64_t window : {1, 4, 32}) {
      RunConfig config = config_of(4, replicas, window);
      config.sync.mode = SyncMode::kDrain;
      const FlightRow row = row_of(plan_flight(config), 8u * replicas);
      const double each = 2 * static_cast<double>(window);
      EXPECT_DOUBLE_EQ(row.pipe_use, each / (4 * 4 + each - 2)) << window << " x " << replicas;
      EXPECT_EQ(row.price, 0);
      EXPECT_DOUBLE_EQ(row.time, 1 / row.pipe_use);
      EXPECT_DOUBLE_EQ(row_of(plan_flight(config), replicas).pipe_use, 1 / 8.0) << "one after the other";
    }
  }
}

TEST(SyncModeTest, AutoTakesWhatIsQuickerToTheSameLoss) {
  for (const std::uint16_t replicas : {1, 2}) {
    std::vector<SyncMode> taken;
    for (const std::uint64_t window : {1, 2, 4, 8, 16, 32, 64, 128}) {
      RunConfig config = config_of(4, replicas, window), drain = config;
      drain.sync.mode = SyncMode::kDrain;
      const double overlaps = row_of(plan_flight(config), in_flight_of(config)).time;
      const double drains = row_of(plan_flight(drain), in_flight_of(drain)).time;
      const std::string why = take_mode(config);
      EXPECT_EQ(config.sync.mode, drains <= overlaps ? SyncMode::kDrain : SyncMode::kOverlap) << window;
      EXPECT_THAT(mode_sentence(config, why), HasSubstr("mode = \"auto\" takes "));
      EXPECT_THAT(why, HasSubstr("a full pipe's time to the same loss with drain"));
      EXPECT_EQ(take_mode(config), "") << "it has one";
      EXPECT_LE(row_of(plan_flight(config), in_flight_of(config)).price, kPriceBorne) << window;
      taken.push_back(config.sync.mode);
    }
    EXPECT_EQ(taken.front(), SyncMode::kDrain);
    EXPECT_EQ(taken.back(), SyncMode::kOverlap);
    EXPECT_TRUE(std::ranges::is_sorted(taken, std::greater())) << "the larger steps are the ones that overlap";
  }
}

// Measured: beside late gradients of one and of seven others it lost 8 to 15 % and 28 %, behind each step nothing.
TEST(SyncModeTest, AWorldOfSmallStepsOverSlowLinesDrains) {
  auto config = parse_config(
      "[model]\nlayers = 4\ndim = 256\nheads = 4\npositions = 256\n[data]\npath = \"text.bin\"\nsequences = 4\n"
      "[pipeline]\nstages = 4\n[end]\ntokens = 390000\n",
      "run.toml");
  ASSERT_TRUE(config.ok());
  ASSERT_EQ(config->microbatches_of_windows(), 1u);
  const FlightPlan overlap = plan_flight(*config);
  EXPECT_GT(row_of(overlap, 2).price, 0.08 / 1.5);
  EXPECT_GT(row_of(overlap, 8).price, 0.28 / 1.5);
  (void)take_mode(*config);
  EXPECT_EQ(config->sync.mode, SyncMode::kDrain);
  EXPECT_EQ(row_of(plan_flight(*config), in_flight_of(*config)).price, 0);
}

TEST(SyncModeTest, AutoOverlapsWhereNothingIsLearnedWhereRoundsEndStepsAndBehindARamp) {
  const auto taken = [](RunConfig config) {
    EXPECT_NE(take_mode(config), "");
    return config.sync.mode;
  };
  RunConfig config = config_of(4, 1, 1);
  ASSERT_EQ(taken(config), SyncMode::kDrain);
  config.executor.kind = ExecutorKind::kPaced;
  EXPECT_EQ(taken(config), SyncMode::kOverlap);
  config = config_of(4, 1, 1);
  config.sync.rule = RuleId::kAllreduce;
  EXPECT_EQ(taken(config), SyncMode::kOverlap);
  EXPECT_EQ(taken(config_of(4, 1, 1, "[sync]\nwarm_steps = 3\n")), SyncMode::kOverlap);
  EXPECT_EQ(taken(config_of(4, 1, 1, "[pipeline]\nin_flight_ramp = [0.1, 0.6]\n")), SyncMode::kOverlap);
  EXPECT_EQ(taken(config_of(4, 1, 1, "[pipeline]\nin_flight_ramp = []\n")), SyncMode::kDrain);
}

// What lines may raise it to.
TEST(InFlightMostTest, IsBoundByWhatMoreWouldCost) {
  for (const std::uint64_t window : {4, 16, 64, 256, 4096}) {
    const RunConfig config = config_of(4, 2, window);
    const std::uint64_t planned = in_flight_of(config), most = in_flight_most(config);
    EXPECT_GE(most, planned) << window;
    EXPECT_EQ((most - planned) % 2, 0u) << "in steps of the replicas";
    RunConfig given = config;
    given.pipeline.in_flight_ramp = std::vector<double>{};
    if (const auto ramp = flight_ramp(config)) given.pipeline.in_flight_ramp = std::vector{ramp->begin, ramp->end};
    const auto price = [&](std::uint64_t n) {
      given.pipeline.in_flight = static_cast<std::uint32_t>(n);
      return row_of(plan_flight(given), n).price;
    };
    const auto dearest = [&](std::uint64_t n) { return (1 + price(n)) / (1 + price(planned)) - 1; };
    EXPECT_LE(dearest(most), kPriceOfLines + 1e-12) << window;
    const bool filled = most == kFillMost * 2 * 4 * 2;
    if (flight_ramp(config)) continue;  // all of it is raised, and not what comes last alone
    EXPECT_TRUE(filled || dearest(most + 2) > kPriceOfLines || price(most + 2) > kPriceBorne) << window;
  }
}

TEST(InFlightMostTest, IsTheGivenNumberAndSomePipesWhereNothingIsLate) {
  RunConfig config = config_of(4, 2, 16);
  config.pipeline.in_flight = 12u;
  EXPECT_EQ(in_flight_most(config), 12u);
  config = config_of(4, 2, 16, "[executor]\nkind = \"paced\"\n");
  EXPECT_EQ(in_flight_of(config), 16u);
  EXPECT_EQ(in_flight_most(config), kFillMost * 16);
}

}  // namespace
}  // namespace shoal
