// A peer that reaches the launching process and not the stage after its own: others of its stage are asked, and it is
// neither fenced nor in anybody's way. Where it is the only one, the run says who cannot reach whom, and goes on once
// they can.
#include <gtest/gtest.h>

#include <algorithm>

#include "events/audit/audit.h"
#include "sim/checkers.h"
#include "tests/quiet_log.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

class StrandedSimTest : public Quiet<testing::Test> {};

SwarmOptions options_for(RuleId rule, std::uint16_t stages, std::uint16_t replicas, std::uint64_t microbatches) {
  SwarmOptions options;
  options.stages = stages;
  options.replicas = replicas;
  options.config = small_config(rule, stages, microbatches);
  return options;
}

std::vector<std::size_t> of_stage(const Swarm& swarm, std::uint16_t stage) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < swarm.peers().size(); ++i)
    if (swarm.peers()[i]->peer->report().stage == StageId(stage)) indices.push_back(i);
  return indices;
}

std::uint64_t committed(const Swarm& swarm) { return swarm.launch()->book().committed(); }
std::string name_of_peer(const Swarm& swarm, std::size_t index) {
  return short_name(swarm.peers()[index]->peer->session());
}
std::uint64_t times_stranded(const Swarm& swarm) {
  std::uint64_t times = 0;
  for (const auto& hosted : swarm.peers())
    if (const StagePeer* stage_peer = hosted->peer->stage_peer()) times += stage_peer->courier().counters().stranded;
  return times;
}

enum class Way { kBoth, kDown, kUp };

// What `a` sends to `b`, what comes back, or both, lasts as long as `blocked`.
void cut(Swarm& swarm, std::size_t a, std::size_t b, Way way, bool blocked = true) {
  const std::string &from = swarm.peers()[a]->address, &to = swarm.peers()[b]->address;
  if (way != Way::kUp) swarm.network().block(from, to, blocked);
  if (way != Way::kDown) swarm.network().block(to, from, blocked);
}

// ---- another replica is there ----
class StrandedPairTest : public StrandedSimTest, public testing::WithParamInterface<std::tuple<RuleId, Way>> {};

// One peer of stage 0 could do the work of both, so that what is lost is lost by waiting.
TEST_P(StrandedPairTest, TheRunKeepsItsRateWithoutThePeerThatReachesNobodyOfTheNextStage) {
  const auto [rule, way] = GetParam();
  std::map<std::string, std::string> files;
  SwarmOptions options = options_for(rule, 3, 2, 1'000'000);
  options.config.pipeline.in_flight = 6;
  options.pace = {.forward = 1ms, .backward = 2ms, .undo = 3ms, .write = 1ms, .round = 2ms, .other = 1ms};
  options.evidence = &files;
  Swarm swarm(std::move(options));
  swarm.run_for(10s);
  const std::size_t peer = of_stage(swarm, 0).at(0);
  const Session session = swarm.peers()[peer]->peer->session();
  const std::uint64_t first = committed(swarm);
  swarm.run_for(20s);
  const std::uint64_t before = committed(swarm) - first;
  for (const std::size_t other : of_stage(swarm, 1)) cut(swarm, peer, other, way);
  const std::uint64_t issued = swarm.launch()->book().next_serial();
  swarm.run_for(20s);
  const std::uint64_t second = committed(swarm);
  swarm.run_for(20s);
  const std::uint64_t after = committed(swarm) - second;
  EXPECT_GE(10 * after, 9 * before) << "in 20 s: " << before << " before the cut, " << after << " after it";
  std::printf("in 20 s: %llu before the cut, %llu after it, %llu within it\n", static_cast<unsigned long long>(before),
              static_cast<unsigned long long>(after), static_cast<unsigned long long>(second - first - before));
  EXPECT_EQ(swarm.peers()[peer]->peer->session(), session);
  EXPECT_EQ(sessions_over(swarm), 0u) << "nobody is fenced for it";
  EXPECT_GT(swarm.launch()->book().low(), issued) << "a round secured what the stranded peer had in an open window";
  EXPECT_EQ(swarm.launch()->parked_text(), "") << "another one does the work";
  EXPECT_NE(swarm.peers()[peer]->peer->report().reason.find("reaches no peer of stage 1"), std::string::npos);
  EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
  swarm.finish_launch("enough");
  ASSERT_TRUE(swarm.run_to_end(120s));
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  const AuditReport report = audit_texts(files);
  EXPECT_TRUE(report.clean()) << audit_table(report);
}

INSTANTIATE_TEST_SUITE_P(Ways, StrandedPairTest,
                         testing::Combine(testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                                          testing::Values(Way::kBoth, Way::kDown, Way::kUp)),
                         [](const auto& item) {
                           const Way way = std::get<1>(item.param);
                           return std::string(std::get<0>(item.param) == RuleId::kDiloco ? "Diloco" : "Allreduce") +
                                  (way == Way::kBoth   ? "Both"
                                   : way == Way::kDown ? "Down"
                                                       : "Up");
                         });

// Once it is healed it is asked again.
TEST_F(StrandedSimTest, AHealedPeerWorksAgain) {
  SwarmOptions options = options_for(RuleId::kDiloco, 2, 2, 1'000'000);
  options.pace = {.forward = 1ms, .backward = 2ms, .undo = 3ms, .write = 1ms, .round = 2ms, .other = 1ms};
  Swarm swarm(std::move(options));
  swarm.run_for(10s);
  const std::size_t peer = of_stage(swarm, 0).at(0);
  const auto counted = [&] { return swarm.peers()[peer]->peer->report().figures.counted; };
  for (const std::size_t other : of_stage(swarm, 1)) cut(swarm, peer, other, Way::kBoth);
  swarm.run_for(30s);
  const std::uint64_t then = counted();
  swarm.run_for(20s);
  EXPECT_EQ(counted(), then);
  for (const std::size_t other : of_stage(swarm, 1)) cut(swarm, peer, other, Way::kBoth, false);
  swarm.run_for(60s);
  EXPECT_GT(counted(), then + 20);
  EXPECT_EQ(sessions_over(swarm), 0u);
}

// ---- there is none ----
TEST_F(StrandedSimTest, TheOnlyPairThatCannotMeetIsNamedAndTheRunGoesOnWhenItCan) {
  for (const Way way : {Way::kBoth, Way::kDown, Way::kUp}) {
    SCOPED_TRACE(static_cast<int>(way));
    Swarm swarm(options_for(RuleId::kDiloco, 2, 1, 400));
    swarm.run_for(8s);
    const std::size_t a = of_stage(swarm, 0).at(0), b = of_stage(swarm, 1).at(0);
    cut(swarm, a, b, way);
    swarm.run_for(30s);
    const std::uint64_t stood = committed(swarm);
    ASSERT_LT(stood, 400u);
    swarm.run_for(60s);
    EXPECT_EQ(committed(swarm), stood);
    const std::string line =
        "parked: stage 0 peer " + name_of_peer(swarm, a) + " cannot reach stage 1: " + name_of_peer(swarm, b);
    EXPECT_EQ(swarm.launch()->parked_text(), line);
    EXPECT_EQ(std::count(swarm.notices().begin(), swarm.notices().end(), line), 1) << "once, however long it lasts";
    EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
    EXPECT_EQ(sessions_over(swarm), 0u);
    cut(swarm, a, b, way, false);
    swarm.run_for(30s);
    EXPECT_EQ(swarm.launch()->parked_text(), "");
    EXPECT_GT(committed(swarm), stood);
    ASSERT_TRUE(swarm.run_to_end(600s));
    EXPECT_EQ(swarm.summary().committed, 400u);
    EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  }
}

TEST_F(StrandedSimTest, WhenNoneOfAStageReachesTheNextEachIsNamedAndOnePathIsEnoughToGoOn) {
  Swarm swarm(options_for(RuleId::kDiloco, 3, 2, 1'000'000));
  swarm.run_for(8s);
  const auto above = of_stage(swarm, 1), below = of_stage(swarm, 2);
  for (const std::size_t a : above)
    for (const std::size_t b : below) cut(swarm, a, b, Way::kBoth);
  swarm.run_for(60s);
  const std::uint64_t stood = committed(swarm);
  const std::string parked = swarm.launch()->parked_text();
  for (const std::size_t a : above) {
    EXPECT_NE(parked.find("stage 1 peer " + name_of_peer(swarm, a) + " cannot reach stage 2: "), std::string::npos)
        << parked;
    EXPECT_EQ(parked.find("stage 0"), std::string::npos) << parked;
  }
  for (const std::size_t b : below) EXPECT_NE(parked.find(name_of_peer(swarm, b)), std::string::npos) << parked;
  cut(swarm, above[0], below[0], Way::kBoth, false);
  swarm.run_for(60s);
  EXPECT_EQ(swarm.launch()->parked_text(), "");
  EXPECT_GT(committed(swarm), stood + 100);
  EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
}

// ---- nothing is wrong ----
TEST_F(StrandedSimTest, AHealthySwarmOfSlowDevicesHasNoStrandedHop) {
  for (const RuleId rule : {RuleId::kAllreduce, RuleId::kDiloco}) {
    SwarmOptions options = options_for(rule, 3, 2, 1'000'000);
    options.pace.forward = 4s;
    options.pace.backward = 12s;
    options.pace.undo = 16s;
    Swarm swarm(std::move(options));
    swarm.run_for(900s);
    EXPECT_GT(committed(swarm), 10u);
    EXPECT_EQ(times_stranded(swarm), 0u);
  }
}

}  // namespace
}  // namespace shoal
