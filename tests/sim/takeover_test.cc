// C3: two lives of a launching process. While the first one lives, however still it stands, the lock on its logs keeps
// a second one out; once the peers have heard the second one, they let the first one's session in no more.
#include <gtest/gtest.h>

#include "sim/checkers.h"
#include "tests/quiet_log.h"
#include "tests/sim/stranger.h"

namespace shoal {
namespace {

class Nobody final : public LaunchOwner {
 public:
  void on_train_line(const TrainLine&) override {}
  void on_notice(const std::string&) override {}
  void on_states(std::map<std::uint16_t, Bytes>, std::function<void(Status)>) override {}
  void on_finished(const RunSummary&, std::optional<Error>) override {}
};

class TakeoverTest : public Quiet<testing::Test> {
 protected:
  static SwarmOptions options() {
    SwarmOptions options;
    options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
    return options;
  }
  static Samples some_samples(const RunConfig& config) {
    auto file = TokenFile::from_bytes(Bytes::from_vector(std::vector<std::uint8_t>(1000)), DType::kU8,
                                      config.model.vocabulary, "some text");
    return Samples::cut(std::move(file).value(), config.data.sequences, config.model.positions).value();
  }
  // What another process says that goes on with the run on the same disk.
  static Status begin_another(Swarm& swarm) {
    SimHost& host = swarm.network().add_host("launch:2");
    const auto wire = swarm.network().make_wire(swarm.run_key().id(), "launch:2");
    SimStorage storage(host.loop(), swarm.disk());
    const auto events = make_silent_event_log();
    const Samples samples = some_samples(swarm.options().config);
    Nobody owner;
    LaunchOptions options{.config = swarm.options().config,
                          .key = swarm.run_key(),
                          .folder = "run",
                          .resume = true,
                          .whereabouts = {{"launch:2"}}};
    const auto launch =
        Launch::open(std::move(options), {host.loop(), *wire, storage, *events, samples, Rng(1)}, owner);
    return launch.ok() ? Status() : launch.error();
  }
  // Of the launching process that writes events now.
  static Session session_of_launch(const Swarm& swarm) {
    Session session;
    for (const SimEvent& e : swarm.events())
      if (e.event == EventKind::kIssue) session = e.writer;
    return session;
  }
};

TEST_F(TakeoverTest, C3NoSecondLifeBeginsWhileAFrozenOneHoldsItsLogs) {
  Swarm swarm(options());
  swarm.run_for(5s);
  swarm.freeze_launch(true);
  swarm.run_for(2s);
  const auto trainer = swarm.disk().content("run/trainer.log"), authority = swarm.disk().content("run/authority.log");
  const Status second = begin_another(swarm);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), ErrorCode::kBusy) << second.error().message;
  EXPECT_EQ(swarm.disk().content("run/trainer.log"), trainer) << "nor does it touch what the first one was writing";
  EXPECT_EQ(swarm.disk().content("run/authority.log"), authority);
  const std::uint64_t before = swarm.launch()->book().committed();
  swarm.freeze_launch(false);
  swarm.run_for(20s);
  EXPECT_GT(swarm.launch()->book().committed(), before) << "the first one goes on";
  EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
}

TEST_F(TakeoverTest, C3AnEarlierLifeIsLetInByNobodyWhoHeardTheNext) {
  Swarm swarm(options());
  swarm.run_for(5s);
  const Session earlier = session_of_launch(swarm);
  swarm.kill_launch_process();
  swarm.resume_launch();
  swarm.run_for(15s);
  ASSERT_NE(session_of_launch(swarm), earlier);
  const RunId run = swarm.launch()->authority().members().run;
  Stranger zombie(swarm, run, swarm.run_key(), earlier.incarnation, PeerRole::kTrainer);
  for (const auto& process : swarm.peers()) {
    zombie.downs.clear();
    zombie.say(process->key.id(), process->address, End{"said by a zombie", {}});
    swarm.run_for(3s);
    ASSERT_FALSE(zombie.downs.empty());
    EXPECT_EQ(zombie.downs.front().code, ErrorCode::kStale) << zombie.downs.front().message;
    EXPECT_FALSE(process->finished) << "what it says ends no peer";
    EXPECT_EQ(swarm.launch()->linked_session(process->key.id()), process->peer->session()) << "the newer link stands";
  }
  EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
}

}  // namespace
}  // namespace shoal
