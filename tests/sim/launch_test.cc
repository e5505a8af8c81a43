// The launching process: full disks, states that cannot be saved, strangers, an early Ctrl-C, and what it says.
#include "runtime/launch/launch.h"

#include <gtest/gtest.h>

#include "common/log.h"
#include "sim/checkers.h"
#include "sim/swarm.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

SwarmOptions options_for(std::uint64_t microbatches) {
  set_log_level(LogLevel::kError);
  SwarmOptions options;
  options.config = small_config(RuleId::kDiloco, options.stages, microbatches);
  return options;
}

std::size_t count_events(const Swarm& swarm, EventKind name, const std::string& cause = "") {
  return static_cast<std::size_t>(
      std::count_if(swarm.events().begin(), swarm.events().end(),
                    [&](const EventRecord& e) { return e.event == name && (cause.empty() || e.cause == cause); }));
}

// The launching process's, not a peer's.
std::size_t count_ends(const Swarm& swarm) {
  return count_events(swarm, EventKind::kEnd, "all tokens are committed") +
         count_events(swarm, EventKind::kEnd, "the run was over already");
}

void resume(Swarm& swarm) {
  swarm.kill_launch();
  swarm.resume_launch();
}

TEST(LaunchTest, AFullDiskUnderTheLogsStopsTheProcessByNameAndAResumedOneGoesOn) {
  Swarm swarm(options_for(400));
  const TimePoint first = swarm.loop().now() + 6s;
  ASSERT_TRUE(swarm.loop().run_until_true([&] { return swarm.launch()->book().committed() > 0; }, first));
  swarm.disk().set_capacity_bytes(0);
  ASSERT_TRUE(run_until_finished(swarm, 10s));
  ASSERT_TRUE(swarm.launch_error());
  EXPECT_EQ(swarm.launch_error()->code, ErrorCode::kIo);
  EXPECT_NE(swarm.launch_error()->message.find("no space left"), std::string::npos) << swarm.launch_error()->message;
  EXPECT_NE(swarm.launch_error()->message.find("--resume run"), std::string::npos) << swarm.launch_error()->message;
  EXPECT_EQ(count_ends(swarm), 0u);
  swarm.disk().set_capacity_bytes(SIZE_MAX);
  resume(swarm);
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_FALSE(swarm.launch_error());
  EXPECT_GE(swarm.summary().committed, 400u);
  EXPECT_EQ(swarm.summary().issued, swarm.summary().committed + swarm.summary().unfinished);
  EXPECT_EQ(first_broken(check_end(swarm)), "");
}

TEST(LaunchTest, StatesThatCannotBeSavedKeepTheRunAndItsPeersForAnotherTry) {
  SwarmOptions options = options_for(64);
  options.save = true;
  Swarm swarm(std::move(options));
  swarm.answer_save([] { return make_error(ErrorCode::kIo, "cannot write model: No space left on device"); });
  ASSERT_TRUE(run_until_finished(swarm, 120s));
  ASSERT_TRUE(swarm.launch_error());
  EXPECT_EQ(swarm.launch_error()->code, ErrorCode::kIo);
  EXPECT_NE(swarm.launch_error()->message.find("No space left"), std::string::npos);
  EXPECT_NE(swarm.launch_error()->message.find("shoal launch --resume run --save OTHER"), std::string::npos)
      << swarm.launch_error()->message;
  EXPECT_EQ(count_ends(swarm), 0u);
  swarm.run_for(5s);
  for (const auto& peer : swarm.peers()) EXPECT_FALSE(peer->finished);
  swarm.answer_save([] { return Status::success(); });
  resume(swarm);
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_FALSE(swarm.launch_error());
  EXPECT_EQ(swarm.states().size(), swarm.options().stages);
  EXPECT_EQ(count_ends(swarm), 1u);
  EXPECT_EQ(first_broken(check_end(swarm)), "");
}

TEST(LaunchTest, WhoJoinsWhileTheStatesAreFetchedGivesThemWhenTheFirstDonorsAreGone) {
  SwarmOptions options = options_for(64);
  options.stages = 1;
  options.config = small_config(RuleId::kDiloco, 1, 64);
  options.save = true;
  Swarm swarm(std::move(options));
  ASSERT_TRUE(swarm.loop().run_until_true([&] { return count_events(swarm, EventKind::kValidation) > 0; },
                                          swarm.loop().now() + 120s));
  for (const auto& peer : swarm.peers()) swarm.network().partition(kSimLaunchAddress, peer->address);
  swarm.add_peer();
  ASSERT_TRUE(run_until_finished(swarm, 60s));
  EXPECT_FALSE(swarm.launch_error());
  EXPECT_EQ(swarm.states().size(), 1u);
}

class DeafOwner final : public LaunchOwner {
  void on_train_line(const TrainLine&) override {}
  void on_notice(const std::string&) override {}
  void on_states(std::map<std::uint16_t, Bytes>, std::function<void(Status)>) override {}
  void on_finished(const RunSummary&, std::optional<Error>) override {}
};

// The states that it fetches at the end are hashed beside the loop: without a place for that it would find out then.
TEST(LaunchDeathTest, WhoSavesSaysWhereLongJobsRun) {
  SimLoop loop;
  SimNetwork network(loop, Rng(1));
  SimHost& host = network.add_host(kSimLaunchAddress, {});
  const auto wire = network.make_wire(Swarm::peer_key(1, 0).id(), kSimLaunchAddress, {});
  SimDisk disk;
  SimStorage storage(host.loop(), disk);
  const auto events = make_silent_event_log();
  const RunConfig config = small_config(RuleId::kDiloco, 1, 10);
  auto text = TokenFile::from_bytes(Buffer(64 * config.targets_per_microbatch() + 1).freeze(), DType::kU8,
                                    config.model.vocabulary, "a text");
  const auto samples = Samples::cut(std::move(text).value(), config.data.sequences, config.model.positions);
  DeafOwner owner;
  const auto open = [&] {
    (void)Launch::open(
        {.config = config, .key = Swarm::peer_key(1, 0), .folder = "run", .whereabouts = {{}}, .save = true},
        {.loop = host.loop(), .wire = *wire, .storage = storage, .events = *events, .samples = *samples, .rng = Rng(1)},
        owner);
  };
  EXPECT_DEATH(open(), "run_aside");
}

// Lines follow the log: what is not durable has not happened.
TEST(LaunchTest, AnEndThatIsNotDurableIsNotSaid) {
  SwarmOptions options = options_for(64);
  options.save = true;
  Swarm swarm(std::move(options));
  swarm.answer_save([&swarm] {
    swarm.disk().set_failing(true);
    return Status::success();
  });
  ASSERT_TRUE(run_until_finished(swarm, 120s));
  ASSERT_TRUE(swarm.launch_error());
  EXPECT_NE(swarm.launch_error()->message.find("--resume run"), std::string::npos) << swarm.launch_error()->message;
  EXPECT_EQ(count_ends(swarm), 0u);
  EXPECT_EQ(count_events(swarm, EventKind::kLost, "the run ended"), 0u);
  swarm.run_for(5s);
  for (const auto& peer : swarm.peers()) EXPECT_FALSE(peer->finished) << "nobody heard END";
  swarm.disk().set_failing(false);
  swarm.answer_save([] { return Status::success(); });
  resume(swarm);
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_EQ(count_ends(swarm), 1u);
  EXPECT_EQ(first_broken(check_end(swarm)), "");
}

// What rounds secured is noted lazily, and no COMMIT waits for it: with nobody who computes, nothing else would find
// out that the log takes nothing more, before the end of the run.
TEST(LaunchTest, ALogThatFailedUnderALazyRecordStopsTheProcessAtOnce) {
  Swarm swarm(options_for(400));
  const auto noted = [&] { return swarm.launch()->book().done().dirty(); };
  ASSERT_TRUE(swarm.loop().run_until_true(noted, swarm.loop().now() + 60s));
  for (std::size_t i = 0; i < swarm.peers().size(); ++i) swarm.freeze_peer(i);
  swarm.run_for(150ms);  // what was on its way is decided
  ASSERT_TRUE(noted()) << "not written yet";
  swarm.disk().set_failing(true);
  ASSERT_TRUE(swarm.loop().run_until_true([&] { return !noted(); }, swarm.loop().now() + 2s));
  swarm.run_for(100ms);
  swarm.disk().set_failing(false);
  ASSERT_TRUE(swarm.finished());
  ASSERT_TRUE(swarm.launch_error());
  EXPECT_EQ(swarm.launch_error()->code, ErrorCode::kIo);
  EXPECT_NE(swarm.launch_error()->message.find("run/trainer.log"), std::string::npos) << swarm.launch_error()->message;
  EXPECT_NE(swarm.launch_error()->message.find("--resume run"), std::string::npos) << swarm.launch_error()->message;
  for (std::size_t i = 0; i < swarm.peers().size(); ++i) swarm.resume_peer(i);
  resume(swarm);
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_EQ(first_broken(check_end(swarm)), "");
}

// A life begins with a record of its own, and may wait for its first peer for hours after that.
TEST(LaunchTest, ALogThatTakesNoFirstRecordStopsTheProcessAtOnce) {
  SwarmOptions options = options_for(64);
  options.replicas = 0;
  Swarm swarm(std::move(options));
  ASSERT_TRUE(
      swarm.loop().run_until_true([&] { return swarm.launch()->trainer() != nullptr; }, swarm.loop().now() + 5s));
  swarm.disk().set_failing(true);
  swarm.run_for(200ms);
  ASSERT_TRUE(swarm.finished());
  ASSERT_TRUE(swarm.launch_error());
  EXPECT_EQ(swarm.launch_error()->code, ErrorCode::kIo);
}

TEST(LaunchTest, ACtrlCBeforeItsStartEndsTheRunInOrder) {
  SwarmOptions options = options_for(64);
  options.finish_at_once = true;
  Swarm swarm(std::move(options));
  ASSERT_TRUE(run_until_finished(swarm, 30s));
  EXPECT_FALSE(swarm.launch_error());
  EXPECT_EQ(swarm.summary().reason, "stopped before its start");
  EXPECT_EQ(swarm.summary().issued, 0u);
}

TEST(LaunchTest, APoolOfParkedMicrobatchesIsSaidOnceAndSoIsItsEnd) {
  SwarmOptions options = options_for(2000);
  options.config.pipeline.rebalance = Rebalance::kOff;  // else a peer of another stage would come
  Swarm swarm(std::move(options));
  swarm.run_for(3s);
  std::vector<std::size_t> first_stage;
  for (std::size_t i = 0; i < swarm.peers().size(); ++i)
    if (swarm.peers()[i]->peer->report().stage == StageId(0)) first_stage.push_back(i);
  ASSERT_EQ(first_stage.size(), 2u);
  for (const std::size_t i : first_stage) swarm.freeze_peer(i);
  swarm.run_for(20s);
  EXPECT_EQ(told(swarm, "parked: no live peer of stage 0"), 1u);
  EXPECT_EQ(told(swarm, "waits for a peer of stage 0 any more"), 0u);
  for (const std::size_t i : first_stage) swarm.resume_peer(i);
  ASSERT_TRUE(swarm.run_to_end(600s));
  EXPECT_EQ(told(swarm, "parked: no live peer of stage 0"), 1u);
  EXPECT_EQ(told(swarm, "waits for a peer of stage 0 any more"), 1u);
}

// A log above its limit cannot be read back, and nobody would know before the resumption.
TEST(LaunchTest, ALogIsSaidToBeHalfFullAndAtEachFurtherTenthWithWhatIsLeftAndWhatToDo) {
  SwarmOptions options = options_for(400);
  options.log_bytes.max = 48 << 10;
  Swarm swarm(std::move(options));
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_EQ(told(swarm, "run/trainer.log has 0 MiB of the 0 MiB that can be read back (5"), 1u);
  EXPECT_EQ(told(swarm, "run/trainer.log has 0 MiB of the 0 MiB that can be read back (6"), 1u);
  EXPECT_GE(told(swarm, "more microbatches, then the run could not be resumed. HINT: make room on its disk"), 2u);
  EXPECT_EQ(told(swarm, "run/trainer.log has 0 MiB of the 0 MiB that can be read back (4"), 0u);
}

TEST(LogSpaceTest, SaysATenthOnceAndCountsWhatIsLeft) {
  LogSpace space("a.log", 1000 << 20, 16 << 20);
  EXPECT_FALSE(space.warning(499 << 20, 100));
  const auto half = space.warning(500 << 20, 100);
  ASSERT_TRUE(half);
  EXPECT_NE(half->find("a.log has 500 MiB of the 1000 MiB that can be read back (50 %): room for about 100 more"),
            std::string::npos)
      << *half;
  EXPECT_FALSE(space.warning(599 << 20, 120));
  EXPECT_TRUE(space.warning(820 << 20, 160)) << "two tenths at once are said once";
  EXPECT_FALSE(space.warning(830 << 20, 160));
  const auto over = space.warning(1000u << 20, 200);
  ASSERT_TRUE(over);
  EXPECT_NE(over->find("cannot be resumed any more. HINT"), std::string::npos) << *over;
}

// Speaks to the launching process with a key of its own, on no list.
class Stranger final : public Transport::Listener {
 public:
  explicit Stranger(Swarm& swarm)
      : run_(as_peer(swarm.launch()->authority().members().run)), key_(KeyPair::from_seed({7, 7, 7})) {
    SimHost& host = swarm.network().add_host("stranger:1");
    wire_ = swarm.network().make_wire(key_.id(), "stranger:1");
    transport_ = std::make_unique<Transport>(
        *wire_, host.loop(),
        Transport::Options{RunId{run_.bytes}, key_.id(), Session::of(key_.id(), 3), PeerRole::kPeer, {{"stranger:1"}}});
    transport_->set_listener(this);
    transport_->learn(run_, {{"launch:1"}});
    transport_->dial(run_);
  }
  bool up() const { return up_; }
  std::size_t heard_commits() const { return heard_commits_; }
  void say(Message message) { EXPECT_TRUE(transport_->send(run_, std::move(message)).ok()); }

 private:
  void on_link_up(const Remote&) override { up_ = true; }
  void on_link_down(const Remote&, const Error&) override { up_ = false; }
  void on_message(const Remote&, Message message, TransferId, std::uint64_t) override {
    heard_commits_ += std::holds_alternative<Commit>(message);
  }
  void on_frames(const Remote&, TransferId, Result<std::vector<Bytes>>) override {}

  PeerId run_;
  KeyPair key_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Transport> transport_;
  bool up_ = false;
  std::size_t heard_commits_ = 0;
};

// A path is written to the event files: whoever reads them could have every contribution of it lost.
TEST(LaunchTest, AStrangersWordLosesNoContributionAndAsksForNoDecision) {
  Swarm swarm(options_for(200));
  swarm.run_for(100ms);
  Stranger stranger(swarm);
  swarm.run_for(2s);
  ASSERT_TRUE(stranger.up());
  std::size_t said = 0;
  for (int second = 0; second < 40 && !swarm.finished(); ++second) {
    CommitAck gone;
    for (const EventRecord& e : swarm.events())
      if (e.event == EventKind::kCommit && e.microbatch && e.entries)
        for (const EntryName& entry_name : *e.entries)
          gone.items.push_back({*e.microbatch, entry_name, CommitState::kGone});
    said += gone.items.size();
    if (gone.items.size() > 4096) gone.items.erase(gone.items.begin(), gone.items.end() - 4096);
    if (stranger.up() && !gone.items.empty()) {
      const MicrobatchId gone_of = gone.items.back().microbatch;
      stranger.say(std::move(gone));
      stranger.say(Waiting{gone_of, {}, {}});
    }
    swarm.run_for(250ms);
  }
  EXPECT_GT(said, 100u);
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_EQ(swarm.summary().lost, 0u);
  EXPECT_EQ(swarm.summary().acks_gone, 0u);
  EXPECT_EQ(stranger.heard_commits(), 0u);
  EXPECT_EQ(first_broken(check_end(swarm)), "");
}

}  // namespace
}  // namespace shoal
