// What a stranger sees of a swarm while it trains, while it is parked and when it has ended.
#include <gtest/gtest.h>

#include "dht/inspect.h"
#include "sim/swarm.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

class StandingSwarmTest : public Quiet<testing::Test> {
 protected:
  static SwarmOptions options() {
    SwarmOptions options;
    options.stages = 2;
    options.dht = true;
    options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
    return options;
  }
  static RunReport inspect(Swarm& swarm) {
    const RunId run{swarm.run_key().id().bytes};
    DhtDirectoryOptions directory_options;
    directory_options.run = run;
    directory_options.seed = 99;
    auto directory = make_sim_directory(swarm.dht(), swarm.loop(), nullptr, std::move(directory_options));
    std::optional<RunReport> report;
    InspectOptions inspect_options;
    inspect_options.run = run;
    inspect_run(*directory, swarm.loop(), std::move(inspect_options), [&](RunReport r) { report = std::move(r); });
    EXPECT_TRUE(swarm.loop().run_until_true([&] { return report.has_value(); }, swarm.loop().now() + 11s));
    return report.value_or(RunReport());
  }
  static std::size_t kill_stage(Swarm& swarm, std::size_t stage) {
    std::size_t killed = 0;
    const std::vector<Member> members = swarm.launch()->authority().members().stages[stage].members;
    for (const Member& member : members)
      for (std::size_t i = 0; i < swarm.peers().size(); ++i)
        if (swarm.peers()[i]->key.id() == member.peer) {
          swarm.kill_peer(i);
          ++killed;
        }
    return killed;
  }
};

TEST_F(StandingSwarmTest, ARunThatIsParkedSaysWhereSinceWhenAndWhoWasLastThere) {
  Swarm swarm(options());
  swarm.run_for(40s);
  const RunReport training = inspect(swarm);
  ASSERT_TRUE(training.standing.has_value());
  EXPECT_EQ(training.standing->state, RunState::kTraining);
  EXPECT_TRUE(training.list_whole);
  EXPECT_GT(training.standing->figures.run_targets, 0u);
  EXPECT_GT(training.standing->figures.rate, 0);
  for (const StageReport& stage : training.stages) {
    EXPECT_EQ(stage.serving, 2u);
    for (const PeerRow& row : stage.peers) EXPECT_TRUE(row.record.has_value()) << row.name;
  }
  ASSERT_EQ(kill_stage(swarm, 1), 2u);
  swarm.run_for(40s);
  const RunReport parked = inspect(swarm);
  ASSERT_TRUE(parked.standing.has_value());
  EXPECT_EQ(parked.standing->state, RunState::kParked);
  EXPECT_EQ(parked.standing->stage, StageId(1));
  EXPECT_FALSE(parked.standing->last.empty());
  EXPECT_EQ(parked.stages[1].serving, 0u);
  ASSERT_EQ(parked.stages[1].peers.size(), 2u);
  for (const PeerRow& row : parked.stages[1].peers) EXPECT_EQ(state_of(parked, row), MemberStanding::kGone);
  EXPECT_EQ(parked.standing->figures.rate, 0);
  // Also after many records, and of the moment.
  swarm.run_for(180s);
  const RunReport later = inspect(swarm);
  EXPECT_EQ(later.standing->since, parked.standing->since);
  EXPECT_FALSE(later.silent().has_value());
}

TEST_F(StandingSwarmTest, TheEndIsWrittenAndStaysForAMinute) {
  Swarm swarm(options());
  swarm.run_for(20s);
  swarm.stop_launch();
  ASSERT_TRUE(swarm.run_to_end(120s));
  swarm.run_for(20s);
  const RunReport ended = inspect(swarm);
  EXPECT_TRUE(ended.ended());
  EXPECT_NE(table_of(ended).find("state: ended: stopped by Ctrl-C"), std::string::npos) << table_of(ended);
}

}  // namespace
}  // namespace shoal
