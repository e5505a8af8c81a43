// How late gradients are in whole swarms, as the peers' event lines say it, against what the order of their lines says.
#include <gtest/gtest.h>

#include "events/audit/audit.h"
#include "events/lost_causes.h"
#include "runtime/launch/delay_watch.h"
#include "sim/checkers.h"
#include "sim/swarm.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

class DelayTest : public Quiet<testing::Test> {
 protected:
  // Three stages of one replica; windows of one microbatch, so that graphs are dropped and computed again.
  static SwarmOptions options(RuleId rule) {
    SwarmOptions options;
    options.stages = 3;
    options.replicas = 1;
    options.config = small_config(rule, 3, 240);
    options.config.pipeline.replicas = 1;
    options.config.pipeline.in_flight = 6;
    options.config.sync.inner_batch = options.config.targets_per_microbatch();
    options.config.sync.microbatches_per_step = 4;
    return options;
  }
};

struct Told {
  DelayHistogram said, counted;  // by the lines' fields; by the lines' order
  std::uint64_t targets = 0;     // stepped
};

// By stage. A step is a `stepped` line, or an `anchor` of the rule allreduce.
std::map<std::uint16_t, Told> delays_of(const Swarm& swarm, RuleId rule) {
  const std::uint64_t each = swarm.options().config.targets_per_microbatch();
  std::map<std::uint16_t, Told> stages;
  std::map<Session, std::uint64_t> steps;
  std::map<EntryName, std::uint64_t> made_at;
  std::map<Session, std::vector<std::uint64_t>> reported;
  for (const SimEvent& e : swarm.events()) {
    if (e.event == EventKind::kForward) made_at.try_emplace(*e.entry_name, steps[e.writer]);
    if (e.event == EventKind::kRoundReport) reported[e.writer] = e.secured->front().serials;
    std::vector<EntryName> used;
    if (rule == RuleId::kDiloco && e.event == EventKind::kStepped) used = *e.entries;
    const bool by_round = rule == RuleId::kAllreduce && e.event == EventKind::kAnchor;
    if (by_round)
      for (const std::uint64_t serial : std::exchange(reported[e.writer], {})) used.push_back({e.writer, serial});
    if (used.empty() && !by_round) continue;
    Told& told = stages[e.stage->value];
    for (const EntryName& entry : used) told.counted.add(steps[e.writer] - made_at.at(entry), each);
    told.targets += used.size() * each;
    if (e.delays) told.said.merge(DelayHistogram::of(*e.delays));
    ++steps[e.writer];
  }
  return stages;
}

TEST_F(DelayTest, LinesSayWhatTheirOrderSaysAndLateStagesAreFresher) {
  Swarm swarm(options(RuleId::kDiloco));
  ASSERT_TRUE(swarm.run_to_end(600s));
  const auto stages = delays_of(swarm, RuleId::kDiloco);
  ASSERT_EQ(stages.size(), 3u);
  for (const auto& [stage, told] : stages) {
    EXPECT_EQ(told.said, told.counted) << "stage " << stage;
    EXPECT_EQ(told.said.total(), told.targets) << "stage " << stage;
    EXPECT_EQ(told.targets, 240 * swarm.options().config.targets_per_microbatch());
    EXPECT_EQ(told.said.mean(), told.counted.mean());
  }
  // Its forward comes later, and its gradients wait for everybody's commits as the first stage's do: about
  // (n/a)(2S - i - 1 + c)/(2S + c), and nearer to the first stage's the more of n waits for devices and windows.
  EXPECT_GT(stages.at(0).said.mean(), 1);
  const double share = stages.at(2).said.mean() / stages.at(0).said.mean();
  EXPECT_GT(share, 0.5) << stages.at(2).said.mean() << " of " << stages.at(0).said.mean();
  EXPECT_LT(share, 1) << stages.at(2).said.mean() << " of " << stages.at(0).said.mean();
}

// Each step is issued behind the one before, and who made it was told ahead of that.
TEST_F(DelayTest, WithDrainNoGradientOfAStageOfOnePeerIsLate) {
  for (const std::uint64_t window : {1, 4}) {
    SwarmOptions drained = options(RuleId::kDiloco);
    drained.config.sync.mode = SyncMode::kDrain;
    drained.config.sync.inner_batch = window * drained.config.targets_per_microbatch();
    Swarm swarm(std::move(drained));
    ASSERT_TRUE(swarm.run_to_end(600s));
    EXPECT_EQ(swarm.summary().committed, 240u);
    const auto stages = delays_of(swarm, RuleId::kDiloco);
    ASSERT_EQ(stages.size(), 3u);
    for (const auto& [stage, told] : stages) {
      EXPECT_EQ(told.counted.counts().size(), 1u) << "stage " << stage << ", mean " << told.counted.mean();
      EXPECT_EQ(told.said, told.counted) << "stage " << stage;
      EXPECT_EQ(told.targets, 240 * swarm.options().config.targets_per_microbatch());
    }
    EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  }
}

// What the histogram shows beyond the bound without one (below) is dropped, by name: nothing that a step uses is later.
TEST_F(DelayTest, WithABoundNoStepUsesALaterGradientAndWhatIsDroppedIsNamed) {
  std::map<std::string, std::string> evidence;
  SwarmOptions bounded = options(RuleId::kDiloco);
  bounded.config.optimizer.delay_max = 1;
  bounded.evidence = &evidence;
  Swarm swarm(std::move(bounded));
  ASSERT_TRUE(swarm.run_to_end(600s));
  std::uint64_t late = 0, lost = 0;
  for (const SimEvent& e : swarm.events()) {
    late += e.event == EventKind::kLate;
    lost += e.event == EventKind::kLost && e.cause == kLostLate;
  }
  EXPECT_GT(late, 0u);
  EXPECT_EQ(late, lost) << "nothing else struck this swarm";
  std::uint64_t used = 0;
  for (const auto& [stage, told] : delays_of(swarm, RuleId::kDiloco)) {
    EXPECT_LE(told.counted.counts().size(), 2u) << "stage " << stage;
    used += told.targets / swarm.options().config.targets_per_microbatch();
  }
  EXPECT_EQ(used + late, 240u * 3);
  const AuditReport report = audit_texts(evidence);
  EXPECT_TRUE(report.clean()) << audit_table(report);
  EXPECT_EQ(report.dropped_late, late);
}

TEST_F(DelayTest, RecomputedGraphsKeepTheirFirstStep) {
  Swarm swarm(options(RuleId::kDiloco));
  std::uint64_t recomputed = 0;
  while (recomputed == 0 && !swarm.finished() && swarm.loop().now().time_since_epoch() < 600s) {
    swarm.run_for(50ms);
    for (const auto& host : swarm.peers())
      if (host->peer && host->peer->stage_peer()) recomputed += host->peer->stage_peer()->figures().recomputed;
  }
  ASSERT_GT(recomputed, 0u) << "no graph was dropped: the test shows nothing";
  ASSERT_TRUE(swarm.run_to_end(600s));
  const auto stages = delays_of(swarm, RuleId::kDiloco);
  EXPECT_GT(stages.at(0).said.counts().size(), 2u) << "a graph lives for less than two steps, a delay does not";
  for (const auto& [stage, told] : stages) EXPECT_EQ(told.said, told.counted) << "stage " << stage;
}

TEST_F(DelayTest, StepsOfRoundsSayItInTheirAnchors) {
  Swarm swarm(options(RuleId::kAllreduce));
  ASSERT_TRUE(swarm.run_to_end(600s));
  const auto stages = delays_of(swarm, RuleId::kAllreduce);
  ASSERT_EQ(stages.size(), 3u);
  for (const auto& [stage, told] : stages) {
    EXPECT_EQ(told.said, told.counted) << "stage " << stage;
    EXPECT_EQ(told.said.total(), 240 * swarm.options().config.targets_per_microbatch());
  }
}

TEST_F(DelayTest, TheLaunchingProcessWarnsOnceAndKeepsTheLargestStageMean) {
  Swarm swarm(options(RuleId::kDiloco));
  ASSERT_TRUE(swarm.run_to_end(600s));
  const auto warnings = std::count_if(swarm.notices().begin(), swarm.notices().end(), [](const std::string& line) {
    return line.find("inner steps late on average") != std::string::npos;
  });
  EXPECT_EQ(warnings, 1);
  ASSERT_TRUE(swarm.summary().delay);
  EXPECT_GT(*swarm.summary().delay, DelayWatch::kDelayBorne);
}

}  // namespace
}  // namespace shoal
