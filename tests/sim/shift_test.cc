// A member that misses a committed round catches up within its session: nothing of it is lost, everything is counted
// once.
#include <gtest/gtest.h>

#include "sim/checkers.h"
#include "sim/swarm.h"
#include "stages/integer_executor.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

// One stage of three replicas whose rounds wait two seconds for a member. The one at index 0 is made to miss one.
class ShiftTest : public Quiet<testing::Test> {
 protected:
  static SwarmOptions options(std::uint64_t microbatches = 400) {
    SwarmOptions options;
    options.stages = 1;
    options.replicas = 3;
    options.config = small_config(RuleId::kDiloco, 1, microbatches);
    options.round_budget = 2s;
    return options;
  }

  // Lines of the late member's.
  static std::size_t count(const Swarm& swarm, EventKind event, std::string_view cause = "") {
    const Session writer = late(swarm).session();
    return static_cast<std::size_t>(std::count_if(swarm.events().begin(), swarm.events().end(), [&](const SimEvent& e) {
      return e.event == event && e.writer == writer && (cause.empty() || e.cause == cause);
    }));
  }
  // Members that have reported what they bring to the newest round.
  static std::size_t contributed(const Swarm& swarm) {
    std::map<RoundId, std::size_t> reports;
    for (const EventRecord& e : swarm.events())
      if (e.event == EventKind::kRoundReport) ++reports[*e.round];
    return reports.empty() ? 0 : reports.rbegin()->second;
  }
  // All lines that are not of single entries, for a failure's message.
  static std::string story(const Swarm& swarm) {
    std::vector<std::string> lines;
    for (const SimEvent& e : swarm.events()) {
      if (e.event == EventKind::kBytes || e.microbatch || e.event == EventKind::kStepped ||
          e.event == EventKind::kMember)
        continue;
      std::string line = std::string(name_of(e.event)) + " " + e.cause;
      if (e.round) line += " round " + std::to_string(e.round->value);
      if (e.version) line += " version " + std::to_string(e.version->value);
      line += " at=" + std::to_string(seconds_of(e.at.time_since_epoch())) + " writer=" + short_name(e.writer);
      lines.push_back(line);
    }
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    for (const std::string& line : swarm.peers()[0]->notices) text += "late: " + line + "\n";
    return text;
  }
  static const Peer& late(const Swarm& swarm) { return *swarm.peers()[0]->peer; }
  static void hear(Swarm& swarm, bool hears) {
    for (std::size_t other : {1u, 2u})
      swarm.network().block(swarm.peers()[other]->address, swarm.peers()[0]->address, !hears);
  }
  static bool run_until(Swarm& swarm, const std::function<bool()>& true_now, Duration limit = 60s) {
    const TimePoint end = swarm.loop().now() + limit;
    while (!true_now() && swarm.loop().now() < end) swarm.run_for(1ms);
    return true_now();
  }

  // Everybody's pieces of one round arrive, then the sums do not reach the late member any more: its work is in the
  // round, the anchor is not here.
  static void lose_the_sum(Swarm& swarm) {
    ASSERT_TRUE(
        run_until(swarm, [&] { return late(swarm).stage_peer() && late(swarm).stage_peer()->version().value >= 2; }));
    ASSERT_TRUE(run_until(swarm, [&] { return contributed(swarm) < 3; }));
    ASSERT_TRUE(run_until(swarm, [&] { return contributed(swarm) == 3; }));
    swarm.run_for(15ms);  // pieces take 10 ms, sums 10 ms more
    hear(swarm, false);
    ASSERT_TRUE(run_until(swarm, [&] { return count(swarm, EventKind::kBehind) > 0; })) << story(swarm);
    hear(swarm, true);
  }
  // The same, and what comes to it comes slowly from the pieces on: the others have the sum first.
  static void lose_the_sum_on_a_slow_line(Swarm& swarm) {
    const std::size_t reported = count(swarm, EventKind::kRoundReport);
    ASSERT_TRUE(
        run_until(swarm, [&] { return count(swarm, EventKind::kRoundReport) > reported && contributed(swarm) == 3; }));
    SimHostShape slow = swarm.options().shape;
    slow.down_bytes_per_second = 2.4e6;
    swarm.network().set_shape(swarm.peers()[0]->address, slow);
    const auto prepared = [&](std::size_t i) { return swarm.peers()[i]->peer->stage_peer()->prepared().has_value(); };
    ASSERT_TRUE(run_until(swarm, [&] { return prepared(1) && prepared(2); })) << story(swarm);
    ASSERT_FALSE(prepared(0));
    hear(swarm, false);
    ASSERT_TRUE(run_until(swarm, [&] { return count(swarm, EventKind::kBehind) > 0; })) << story(swarm);
    hear(swarm, true);
  }
};

TEST_F(ShiftTest, WorkThatTheMissedRoundNamesIsNotCountedAgain) {
  Swarm swarm(options());
  lose_the_sum(swarm);
  ASSERT_TRUE(run_until(swarm, [&] { return count(swarm, EventKind::kShifted, "snapshot") == 1; })) << story(swarm);
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  EXPECT_EQ(swarm.summary().lost, 0u);
  EXPECT_EQ(late(swarm).report().sessions, 1u);
  EXPECT_GT(late(swarm).report().status.version.value, 4u) << "it takes part in rounds again";
}

TEST_F(ShiftTest, WorkThatTheMissedRoundsDoNotNameStaysCounted) {
  Swarm swarm(options());
  ASSERT_TRUE(run_until(swarm, [&] {
    return late(swarm).stage_peer() && late(swarm).stage_peer()->version().value >= 2 &&
           late(swarm).stage_peer()->status().settled_targets > 0;
  }));
  const std::uint64_t held = late(swarm).stage_peer()->status().settled_targets;
  swarm.freeze_peer(0);
  swarm.run_for(8s);  // two budgets without it, and it is left out; membership runs 10 s
  swarm.resume_peer(0);
  ASSERT_TRUE(run_until(swarm, [&] { return count(swarm, EventKind::kShifted, "anchor") == 1; })) << story(swarm);
  EXPECT_GE(late(swarm).stage_peer()->status().settled_targets, held);
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  for (const EventRecord& e : swarm.events())
    EXPECT_FALSE(e.event == EventKind::kLost && e.cause != "gone") << "lost with its session";
  EXPECT_EQ(late(swarm).report().sessions, 1u);
}

TEST_F(ShiftTest, ASessionThatCannotFetchTheStateJoinsAnew) {
  Swarm swarm(options(2000));
  lose_the_sum(swarm);
  hear(swarm, false);
  ASSERT_TRUE(run_until(swarm, [&] { return late(swarm).report().sessions == 2; })) << story(swarm);
  for (const EventRecord& e : swarm.events()) EXPECT_NE(e.event, EventKind::kShifted);
  hear(swarm, true);
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
}

// The state takes several rounds to arrive: the others go on meanwhile, and the member comes back in with all its work.
TEST_F(ShiftTest, RoundsGoOnWhileALargeStateTravelsOnASlowLine) {
  static constexpr std::size_t kParameters = 2'000'000;
  SwarmOptions large = options(1'000'000);
  large.round_budget = 0s;
  large.config.pipeline.in_flight = 24;  // every device is busy
  large.config.sync.inner_batch = 9 * large.config.targets_per_microbatch();
  large.config.sync.inner_steps = 4;
  large.config.sync.round_cap_s = 0;
  large.factory = [](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
    return std::unique_ptr<StageExecutor>(std::make_unique<IntegerExecutor>(spec, kParameters));
  };
  Swarm swarm(std::move(large));
  const auto rounds = [&](TimePoint from, TimePoint to) {
    return std::count_if(swarm.events().begin(), swarm.events().end(), [&](const SimEvent& e) {
      return e.event == EventKind::kRoundCommit && e.at > from && e.at <= to;
    });
  };
  swarm.run_for(30s);
  const double rate = static_cast<double>(rounds(TimePoint{} + 10s, TimePoint{} + 30s)) / 20;
  lose_the_sum_on_a_slow_line(swarm);
  const TimePoint missed = swarm.loop().now();
  ASSERT_TRUE(run_until(swarm, [&] { return count(swarm, EventKind::kShifted) == 1; })) << story(swarm);
  const TimePoint fetched = swarm.loop().now();
  const double expected = rate * seconds_of(fetched - missed);
  EXPECT_GE(expected, 3) << "the state arrives too soon to show anything";
  EXPECT_GE(static_cast<double>(rounds(missed, fetched)), 0.9 * expected - 1);
  const auto up_to_date = [&] {
    return late(swarm).stage_peer() &&
           late(swarm).stage_peer()->version() == swarm.launch()->authority().status()[0].version;
  };
  ASSERT_TRUE(run_until(swarm, up_to_date)) << story(swarm);
  const std::size_t entered = count(swarm, EventKind::kRoundEnter);
  ASSERT_TRUE(run_until(swarm, [&] { return count(swarm, EventKind::kRoundEnter) > entered; })) << story(swarm);
  swarm.finish_launch("enough");
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  EXPECT_EQ(swarm.summary().lost, 0u);
  EXPECT_EQ(late(swarm).report().sessions, 1u);
}

}  // namespace
}  // namespace shoal
