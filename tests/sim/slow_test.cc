// A slow disk at the launching process and devices whose jobs take minutes slow a run; they end no session.
#include <gtest/gtest.h>

#include "sim/checkers.h"
#include "sim/swarm.h"
#include "tests/quiet_log.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

SwarmOptions slow_options(RuleId rule, std::uint16_t stages, std::uint64_t microbatches) {
  SwarmOptions options;
  options.stages = stages;
  options.replicas = 2;
  options.config = small_config(rule, stages, microbatches);
  return options;
}

bool said(const Swarm& swarm, const std::string& text) { return told(swarm, text) > 0; }

class QuietLog : public Quiet<testing::Test> {};

// ---- the disk ----
class SlowDiskTest : public QuietLog, public testing::WithParamInterface<RuleId> {};

TEST_P(SlowDiskTest, TwelveSecondsASyncSlowTheRunAndEndNoSession) {
  Swarm swarm(slow_options(GetParam(), 2, 100'000));
  swarm.run_for(5s);
  const std::uint64_t before = swarm.launch()->book().committed();
  swarm.disk().set_sync_delay(12s);
  swarm.run_for(300s);
  EXPECT_EQ(sessions_over(swarm), 0u);
  EXPECT_GT(swarm.launch()->book().committed(), before + 20);
  EXPECT_TRUE(said(swarm, "the disk has not confirmed"));
  EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
}

TEST_P(SlowDiskTest, ARunBeginsOnSuchADisk) {
  Swarm swarm(slow_options(GetParam(), 2, 100'000));
  swarm.disk().set_sync_delay(12s);
  swarm.run_for(300s);
  EXPECT_EQ(sessions_over(swarm), 0u);
  EXPECT_GT(swarm.launch()->book().committed(), 20u);
}

INSTANTIATE_TEST_SUITE_P(Rules, SlowDiskTest, testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                         [](const auto& rule) { return rule.param == RuleId::kDiloco ? "diloco" : "allreduce"; });

// ---- devices ----
struct Jobs {
  const char* name;
  Duration forward, backward, time;
  std::uint64_t commits;
};

class SlowDeviceTest : public QuietLog, public testing::WithParamInterface<Jobs> {};

// [timing] as every run has it by default.
TEST_P(SlowDeviceTest, JobsOfAnyLengthNeedNoKey) {
  for (const RuleId rule : {RuleId::kDiloco, RuleId::kAllreduce}) {
    SCOPED_TRACE(rule == RuleId::kDiloco ? "diloco" : "allreduce");
    SwarmOptions options = slow_options(rule, 2, 1'000'000);
    options.pace.forward = GetParam().forward;
    options.pace.backward = GetParam().backward;
    options.pace.undo = GetParam().forward + GetParam().backward;
    Swarm swarm(std::move(options));
    swarm.run_for(GetParam().time);
    EXPECT_EQ(sessions_over(swarm), 0u);
    EXPECT_GE(swarm.launch()->book().committed(), GetParam().commits);
    EXPECT_GT(swarm.launch()->summary().rounds, 0u);
    EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
    RecordProperty("committed", static_cast<int>(swarm.launch()->book().committed()));
    std::printf("%s: %llu committed, %llu rounds, %llu abandoned, %llu asked again\n", GetParam().name,
                static_cast<unsigned long long>(swarm.launch()->book().committed()),
                static_cast<unsigned long long>(swarm.launch()->summary().rounds),
                static_cast<unsigned long long>(swarm.launch()->summary().rounds_abandoned),
                static_cast<unsigned long long>(swarm.launch()->summary().asked_again));
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, SlowDeviceTest,
                         testing::Values(Jobs{"a_millisecond", 1ms, 1ms, 20s, 500},
                                         Jobs{"four_and_twelve_seconds", 4s, 12s, 1200s, 30},
                                         Jobs{"eleven_seconds", 11s, 11s, 1200s, 30},
                                         Jobs{"one_and_two_minutes", 60s, 120s, 7200s, 15}),
                         [](const auto& jobs) { return jobs.param.name; });

using StarvedTest = QuietLog;

// Forty other programs on two processors. In wall time each job is many times the longest that was measured before.
TEST_F(StarvedTest, AProcessorThatOthersHaveMakesAMemberSlowAndEndsNoSession) {
  for (const RuleId rule : {RuleId::kDiloco, RuleId::kAllreduce}) {
    SwarmOptions options = slow_options(rule, 2, 1'000'000);
    options.on_processor = true;
    options.pace = {.forward = 1s, .backward = 2s, .undo = 3s, .write = 500ms, .round = 500ms, .other = 100ms};
    Swarm swarm(std::move(options));
    swarm.run_for(120s);
    ASSERT_EQ(sessions_over(swarm), 0u);
    const std::uint64_t before = swarm.launch()->book().committed();
    swarm.peers()[0]->device->set_share(0.05);
    swarm.run_for(1200s);
    EXPECT_EQ(sessions_over(swarm), 0u);
    EXPECT_GT(swarm.launch()->book().committed(), before + 20);
    EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
  }
}

TEST_F(StarvedTest, AProcessorThatOthersHaveIsNamedOnceASession) {
  SwarmOptions options = slow_options(RuleId::kDiloco, 1, 1'000'000);
  options.on_processor = true;
  options.pace.forward = options.pace.backward = 1s;
  Swarm swarm(std::move(options));
  swarm.run_for(60s);
  swarm.peers()[0]->device->set_share(0.05);
  swarm.run_for(300s);
  const auto& notices = swarm.peers()[0]->notices;
  EXPECT_EQ(std::ranges::count_if(
                notices, [](const std::string& line) { return line.find("other programs have") != line.npos; }),
            1);
}

using SlowHangTest = QuietLog;

// Four times the longest job of its kind, and no longer.
TEST_F(SlowHangTest, AHangAmongLongJobsIsFoundInBoundedTime) {
  SwarmOptions options = slow_options(RuleId::kDiloco, 1, 1'000'000);
  options.pace.forward = 4s;
  options.pace.backward = 12s;
  Swarm swarm(std::move(options));
  swarm.run_for(200s);
  EXPECT_EQ(sessions_over(swarm), 0u);
  SimPace hung;
  hung.forward = hung.backward = std::chrono::hours(10);
  swarm.peers()[0]->device->set_pace(hung);
  const Session session = swarm.peers()[0]->peer->session();
  swarm.run_for(90s);
  const bool fenced = std::any_of(swarm.events().begin(), swarm.events().end(), [&](const SimEvent& e) {
    return e.event == EventKind::kSessionOver && e.about == session &&
           e.cause.find("the longest finished one of its kind took") != std::string::npos;
  });
  EXPECT_TRUE(fenced);
}

}  // namespace
}  // namespace shoal
