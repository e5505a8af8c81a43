// What peers wrote on their disks brings back a stage that nobody serves any more, and a whole run.
#include <gtest/gtest.h>

#include <algorithm>

#include "events/audit/audit.h"
#include "sim/checkers.h"
#include "sim/scenario.h"
#include "tests/quiet_log.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

class RestoreTest : public Quiet<testing::TestWithParam<RuleId>> {
 protected:
  SwarmOptions with_checkpoints(std::uint64_t microbatches, std::uint16_t replicas = 1) {
    SwarmOptions options;
    options.stages = 2;
    options.replicas = replicas;
    options.config = small_config(GetParam(), options.stages, microbatches);
    keep_checkpoints(options);
    options.evidence = &files_;
    return options;
  }
  static std::size_t restores(const Swarm& swarm) {
    return static_cast<std::size_t>(std::ranges::count(swarm.events(), EventKind::kRestored, &SimEvent::event));
  }
  // Its last word, the counting, and what a stranger reads of its files.
  void expect_a_good_end(Swarm& swarm, std::uint64_t microbatches) {
    ASSERT_TRUE(swarm.run_to_end(900s));
    EXPECT_FALSE(swarm.launch_error());
    EXPECT_EQ(swarm.summary().committed, microbatches);
    EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
    const AuditReport report = audit_texts(files_);
    EXPECT_TRUE(report.clean()) << audit_table(report);
    EXPECT_EQ(report.taken_back, swarm.summary().taken_back);
  }

  std::map<std::string, std::string> files_;
};

INSTANTIATE_TEST_SUITE_P(Rules, RestoreTest, testing::Values(RuleId::kDiloco, RuleId::kAllreduce),
                         [](const auto& item) { return item.param == RuleId::kDiloco ? "Diloco" : "Allreduce"; });

TEST_P(RestoreTest, AStageWithNobodyLeftGoesBackToACheckpointAndWhatThatTakesIsNamed) {
  Swarm swarm(with_checkpoints(600));
  // Not long behind a checkpoint: what came since is on no disk.
  std::size_t rounds = 0;
  for (int i = 0; i < 10 && restores(swarm) == 0; ++i) {
    swarm.run_for(3300ms);
    rounds = swarm.launch()->summary().rounds;
    swarm.kill_peer(1, true);
    swarm.run_for(2s);
    swarm.restart_peer(1);
    swarm.run_for(12s);
    EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
  }
  EXPECT_GT(rounds, 0u);
  EXPECT_GT(restores(swarm), 0u);
  EXPECT_GT(told(swarm, "went back to version"), 0u);
  expect_a_good_end(swarm, 600);
  EXPECT_GT(swarm.summary().taken_back, 0u);
}

TEST_P(RestoreTest, EverythingDiesAgainAndAgain) {
  Swarm swarm(with_checkpoints(500, 2));
  for (int i = 0; i < 6; ++i) {
    swarm.run_for(3s + 370ms * i);
    if (swarm.finished()) break;
    for (std::size_t peer = 0; peer < swarm.peers().size(); ++peer) swarm.kill_peer(peer, i % 2 == 0);
    i % 3 == 0 ? swarm.kill_launch_process() : swarm.kill_launch(true);
    swarm.run_for(1s);
    swarm.resume_launch();
    for (std::size_t peer = 0; peer < swarm.peers().size(); ++peer) {
      swarm.run_for(200ms);
      swarm.restart_peer(peer);
    }
    const std::uint64_t committed = swarm.launch()->book().committed();
    EXPECT_TRUE(swarm.loop().run_until_true(
        [&] { return swarm.finished() || swarm.launch()->book().committed() > committed; }, swarm.loop().now() + 60s))
        << "loss " << i << ": " << swarm.launch()->parked_text();
    EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
  }
  expect_a_good_end(swarm, 500);
}

TEST_P(RestoreTest, ADiskThatTakesNothingCostsTheCheckpointAloneAndIsNamed) {
  Swarm swarm(with_checkpoints(300));
  swarm.run_for(1s);
  swarm.peers()[0]->disk->set_capacity_bytes(0);
  swarm.peers()[1]->disk->set_failing(true);
  swarm.run_for(10s);
  for (const std::size_t peer : {0, 1}) {
    const auto& notices = swarm.peers()[peer]->notices;
    EXPECT_TRUE(std::ranges::any_of(notices, [](const auto& line) { return line.starts_with("no checkpoint of"); }))
        << peer;
    EXPECT_TRUE(swarm.peers()[peer]->alive);
  }
  expect_a_good_end(swarm, 300);
  EXPECT_EQ(restores(swarm), 0u);
}

TEST_P(RestoreTest, ADamagedCheckpointIsNamedAndNeverLoaded) {
  Swarm swarm(with_checkpoints(600));
  swarm.run_for(9s);
  SimDisk& disk = *swarm.peers()[1]->disk;
  swarm.kill_peer(1);
  const std::string folder = "home/checkpoint-" + hex_of(RunId{swarm.run_key().id().bytes}).substr(0, 16) + "-" +
                             hex_of(swarm.peers()[1]->key.id()).substr(0, 16);
  std::size_t damaged = 0;
  for (const char* slot : {"-0", "-1"}) {
    const std::string path = folder + slot + ".safetensors";
    auto bytes = disk.content(path);
    if (!bytes) continue;
    bytes->back() ^= 1;
    disk.put(path, *bytes);
    ++damaged;
  }
  ASSERT_EQ(damaged, 2u);
  swarm.restart_peer(1);
  swarm.run_for(60s);
  EXPECT_EQ(std::ranges::count_if(swarm.peers()[1]->notices,
                                  [](const auto& line) { return line.starts_with("a checkpoint cannot be used"); }),
            2);
  EXPECT_NE(swarm.launch()->parked_text().find("stage 1 has no serving peer"), std::string::npos) << "nobody has it";
  EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
}

// A stage whose first version was committed and died with all that had it before one of them wrote of it has none to go
// back to, and waits.
bool only_first_versions_died(const AuditReport& report) {
  return report.verdict() == AuditVerdict::kIncomplete &&
         std::ranges::all_of(report.incomplete, [](const std::string& line) {
           return line.starts_with("no replica of stage ") &&
                  line.ends_with(" wrote of its anchor at the last version 1");
         });
}

TEST_P(RestoreTest, NoSeedLosesOrCountsTwiceWhenLastHoldersDieToo) {
  FaultOptions faults;
  faults.only = {FaultKind::kKill, FaultKind::kMachineDeath, FaultKind::kLaunchKill, FaultKind::kLaunchPower};
  faults.mean_between = 700ms;
  std::uint64_t went_back = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    files_.clear();
    SwarmOptions options = with_checkpoints(100'000, 2);
    options.seed = seed;
    const ScenarioResult result = run_scenario(std::move(options), faults);
    EXPECT_EQ(first_broken(result.broken), "") << "seed " << seed;
    const AuditReport report = audit_texts(files_);
    EXPECT_TRUE(report.clean() || only_first_versions_died(report)) << "seed " << seed << "\n" << audit_table(report);
    went_back += result.restores;
  }
  EXPECT_GT(went_back, 0u);
}

}  // namespace
}  // namespace shoal
