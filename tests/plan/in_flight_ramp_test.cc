// How many microbatches may be under way over a run: [pipeline] in_flight_ramp.
#include <gmock/gmock.h>

#include <string>

#include "runtime/plan/flight_plan.h"

namespace shoal {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kTargets = 100;  // of a microbatch

// `replicas` of 16 microbatches to an inner step each, and a schedule of 1000 microbatches.
RunConfig ramped(std::uint16_t replicas, std::uint32_t in_flight, std::vector<double> ramp = {0.1, 0.6}) {
  RunConfig config;
  config.model.positions = kTargets;
  config.data.sequences = 1;
  config.pipeline.stages = 2;
  config.pipeline.replicas = replicas;
  config.pipeline.in_flight = in_flight;
  config.pipeline.in_flight_ramp = std::move(ramp);
  config.sync.inner_batch = 16 * kTargets;
  config.schedule.tokens = 1000 * kTargets;
  return config;
}

std::string message_of(const std::string& more, const std::string& end = "[end]\ntokens = 100000\n") {
  const auto config = parse_config(
      "[model]\nlayers = 4\ndim = 32\nheads = 4\npositions = 64\n[data]\npath = \"text.bin\"\n" + end + more,
      "run.toml");
  return config.ok() ? "ok" : config.error().message;
}

TEST(InFlightRampTest, BeginsWithAQuarterOfTheWindowsAndEndsWithAll) {
  const RunConfig config = ramped(2, 28);
  EXPECT_EQ(flight_limits(config).fewest, 8u);  // of 32 that make a step of both
  EXPECT_EQ(flight_limits(config).at(0), 8u);
  EXPECT_EQ(flight_limits(config).at(100 * kTargets), 8u);
  EXPECT_EQ(flight_limits(config).at(125 * kTargets), 9u);  // one more every 25 microbatches
  EXPECT_EQ(flight_limits(config).at(350 * kTargets), 18u);
  EXPECT_EQ(flight_limits(config).at(600 * kTargets - 1), 27u);
  EXPECT_EQ(flight_limits(config).at(600 * kTargets), 28u);
  EXPECT_EQ(flight_limits(config).at(1000 * kTargets), 28u);
  EXPECT_EQ(flight_limits(config).at(UINT64_MAX), 28u);
}

TEST(InFlightRampTest, NeverFallsAndTakesEachWholeNumberOnce) {
  const RunConfig config = ramped(1, 9, {0.05, 0.95});
  std::vector<std::uint64_t> seen;
  for (std::uint64_t targets = 0; targets <= 1000 * kTargets; targets += kTargets / 2) {
    const std::uint64_t now = flight_limits(config).at(targets);
    if (seen.empty() || now != seen.back()) seen.push_back(now);
  }
  EXPECT_THAT(seen, testing::ElementsAre(4, 5, 6, 7, 8, 9));
}

TEST(InFlightRampTest, KeepsOneForEachReplicaAndNoMoreThanInFlight) {
  for (std::uint16_t replicas = 1; replicas <= 4; ++replicas) {
    EXPECT_EQ(flight_limits(ramped(replicas, 64)).at(0), 4u * replicas) << replicas;
    RunConfig small = ramped(replicas, 64);
    small.sync.inner_batch = kTargets;  // a step of every microbatch
    EXPECT_EQ(flight_limits(small).at(0), replicas);
    EXPECT_EQ(flight_limits(small).at(600 * kTargets), 64u);
    small.pipeline.in_flight = 1;  // fewer than a replica each, because somebody wants it so
    EXPECT_EQ(flight_limits(small).at(0), 1u) << replicas;
    EXPECT_EQ(flight_limits(small).at(1000 * kTargets), 1u) << replicas;
    EXPECT_EQ(full_in_flight_share(small, 10), 1.0) << "nothing is held back";
  }
  RunConfig by_itself = ramped(3, 64);
  by_itself.pipeline.in_flight = {};
  EXPECT_EQ(flight_limits(by_itself).at(1000 * kTargets), in_flight_of(by_itself));
}

TEST(InFlightRampTest, OfAllreduceAndWarmStepsTheWindowIsTheStep) {
  RunConfig config = ramped(2, 28);
  config.sync.rule = RuleId::kAllreduce;
  config.sync.microbatches_per_step = 20;
  EXPECT_EQ(flight_limits(config).at(0), 5u);
  config.sync.rule = RuleId::kDiloco;
  config.sync.warm_steps = 3;
  EXPECT_EQ(flight_limits(config).at(0), 5u) << "the smaller of both, so that the number never falls behind them";
  config.sync.microbatches_per_step = 200;
  EXPECT_EQ(flight_limits(config).at(0), 8u);
}

// As large a part of `most` as the ramp allows of all, so that the price of the whole run bounds both.
TEST(InFlightRampTest, SlowLinesMayRaiseItByTheSameFactorAllAlong) {
  RunConfig config = ramped(2, 28);
  config.pipeline.in_flight = {};
  config.sync.inner_batch = 64 * kTargets;
  config.schedule.tokens = 1000 * kTargets;
  FlightLimits limits = flight_limits(config);
  EXPECT_GT(limits.most, limits.full);
  limits = {.full = 20, .most = 30, .fewest = 6, .begin = 100 * kTargets, .end = 600 * kTargets};
  EXPECT_EQ(limits.most_at(0), 9u);
  EXPECT_EQ(limits.most_at(600 * kTargets), 30u);
  for (std::uint64_t targets = 0; targets <= 1000 * kTargets; targets += 10 * kTargets)
    EXPECT_GE(limits.most_at(targets), limits.at(targets)) << targets;
  EXPECT_EQ(flight_limits(ramped(2, 28)).most_at(350 * kTargets), 18u) << "a given number is kept to";
}

TEST(InFlightRampTest, WithoutARampAllAreAllowedFromTheBeginning) {
  RunConfig config = ramped(2, 28, {});
  EXPECT_EQ(flight_limits(config).at(0), 28u);
  EXPECT_EQ(full_in_flight_share(config, 0), 1.0);
  config.schedule.tokens = 0;
  EXPECT_EQ(flight_limits(config).at(0), 28u);
  EXPECT_EQ(flight_limits(ramped(2, 28, {0, 0})).at(0), 28u);
  EXPECT_EQ(flight_limits(ramped(2, 28, {0.5, 0.5})).at(500 * kTargets - 1), 8u);
  EXPECT_EQ(flight_limits(ramped(2, 28, {0.5, 0.5})).at(500 * kTargets), 28u);
}

TEST(InFlightRampTest, TellsTheShareThatWasNotHeldBack) {
  const RunConfig config = ramped(2, 28);
  EXPECT_EQ(full_in_flight_share(config, 0), 0.0);
  EXPECT_EQ(full_in_flight_share(config, 600 * kTargets), 0.0);
  EXPECT_DOUBLE_EQ(full_in_flight_share(config, 800 * kTargets), 0.25);
  EXPECT_DOUBLE_EQ(full_in_flight_share(config, 1000 * kTargets), 0.4);
}

TEST(InFlightRampTest, IsKeptInTheManifest) {
  const auto config = parse_config(
      "[model]\nlayers = 4\ndim = 32\nheads = 4\npositions = 64\n[data]\npath = \"text.bin\"\n[pipeline]\n"
      "in_flight_ramp = [0, 0.65]\n[end]\ntokens = 100000\n",
      "run.toml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_THAT(*config->pipeline.in_flight_ramp.given, testing::ElementsAre(0.0, 0.65));
  const auto body = canonical_text(*config);
  ASSERT_TRUE(body.ok());
  EXPECT_THAT(*body, HasSubstr("\nin_flight_ramp = [0, 0.65]\n"));
  const auto again = parse_manifest(*body);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->pipeline.in_flight_ramp.given, config->pipeline.in_flight_ramp.given);
}

// 32 microbatches make a step of both replicas.
TEST(InFlightRampTest, ByItselfItIsWhereAllAtOnceWouldCostTooMuch) {
  const auto by_itself = [](std::uint32_t in_flight) {
    RunConfig config = ramped(2, in_flight);
    config.pipeline.in_flight_ramp = {};
    return config;
  };
  EXPECT_EQ(flight_ramp(by_itself(8)), std::nullopt);
  EXPECT_EQ(flight_ramp(by_itself(9)), std::nullopt) << "borne";
  EXPECT_EQ(flight_ramp(by_itself(28)), (FlightRamp{0.1, 0.6}));
  EXPECT_EQ(flight_limits(by_itself(28)).at(0), 8u);
  EXPECT_EQ(flight_limits(by_itself(28)).at(350 * kTargets), 18u) << "as with the list";
  RunConfig config = by_itself(28);
  config.schedule.tokens = 0;
  EXPECT_EQ(flight_ramp(config), std::nullopt) << "no schedule, and no share of it";
  config = by_itself(28);
  config.sync.rule = RuleId::kAllreduce;
  config.sync.microbatches_per_step = 28;
  EXPECT_NE(flight_ramp(config), std::nullopt);
  config.sync.mode = SyncMode::kDrain;
  EXPECT_EQ(flight_ramp(config), std::nullopt) << "nothing is late";
  config = by_itself(28);
  config.executor.kind = ExecutorKind::kPaced;
  EXPECT_EQ(flight_ramp(config), std::nullopt) << "nothing is learned";
  const auto parsed = parse_config(
      "[model]\nlayers = 4\ndim = 32\nheads = 4\npositions = 64\n[data]\npath = \"text.bin\"\n", "run.toml");
  ASSERT_TRUE(parsed.ok()) << "without a schedule";
  EXPECT_EQ(parsed->pipeline.in_flight_ramp.given, std::nullopt);
  EXPECT_THAT(*canonical_text(*parsed), HasSubstr("\nin_flight = \"auto\"\nin_flight_ramp = \"auto\"\n"));
}

TEST(InFlightRampTest, RefusesWhatIsNoRamp) {
  const auto refused = [](const std::string& list) {
    return message_of("[pipeline]\nin_flight_ramp = " + list + "\n");
  };
  EXPECT_EQ(refused("[]"), "ok");
  EXPECT_EQ(refused("[0, 1]"), "ok");
  EXPECT_EQ(refused("[0.6, 0.1]"),
            "run.toml: [pipeline] in_flight_ramp = [0.6, 0.1] is out of bounds: give begin and end, 0 <= begin <= end "
            "<= 1, or [] for none");
  EXPECT_THAT(refused("[0.1, 1.5]"), HasSubstr("[0.1, 1.5] is out of bounds"));
  EXPECT_THAT(refused("[-0.1, 0.5]"), HasSubstr("[-0.1, 0.5] is out of bounds"));
  EXPECT_THAT(refused("[0.1]"), HasSubstr("[0.1] is out of bounds"));
  EXPECT_THAT(refused("[0.1, 0.2, 0.3]"), HasSubstr("= 3 items is out of bounds: allowed is 0 to 2 items"));
  EXPECT_THAT(refused("[0.1, \"all\"]"), HasSubstr("must be auto or list of numbers"));
  EXPECT_THAT(refused("[0.1, nan]"), HasSubstr("must be auto or list of numbers"));
  EXPECT_THAT(refused("0.6"), HasSubstr("must be auto or list of numbers"));
  EXPECT_THAT(refused("\"none\""), HasSubstr("\"none\" is not known: it is \"auto\", or a list of 0 to 2 numbers"));
}

TEST(InFlightRampTest, NeedsAScheduleAndGradientsThatMayBeLate) {
  const std::string ramp = "[pipeline]\nin_flight_ramp = [0.1, 0.6]\n";
  EXPECT_EQ(message_of(ramp), "ok");
  EXPECT_THAT(message_of(ramp, ""), HasSubstr("in_flight_ramp is of a schedule, and this run has none: give [end]"));
  EXPECT_EQ(message_of(ramp, "[schedule]\nsteps = 100\n"), "ok");
  EXPECT_EQ(message_of(ramp + "[sync]\nrule = \"allreduce\"\n"), "ok");
  EXPECT_THAT(message_of(ramp + "[sync]\nrule = \"allreduce\"\nmode = \"drain\"\n"),
              HasSubstr("does not go with [sync] mode = \"drain\""));
}

}  // namespace
}  // namespace shoal
