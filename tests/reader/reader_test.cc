// A text out of a simulated swarm, against the same model in one process.
#include "runtime/reader/reader.h"

#include <gmock/gmock.h>

#include "runtime/generate/local_text.h"
#include "sim/swarm.h"
#include "stages/integer_executor.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

using testing::HasSubstr;

class ReaderTest : public Quiet<testing::Test> {
 protected:
  static SwarmOptions options() {
    SwarmOptions options;
    options.config = small_config(RuleId::kDiloco, options.stages, 1'000'000);
    options.config.model.context = 200;
    return options;
  }
  static GenerateOptions some_text(std::uint64_t tokens) {
    return {.prompt = "once upon a time", .tokens = tokens, .sampling = {.temperature = 30, .seed = 4}};
  }
  static Generated here(const SwarmOptions& with, const GenerateOptions& wanted) {
    auto chain = StageChain::make(with.config, [](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
      return {std::make_unique<IntegerExecutor>(spec)};
    });
    LocalText model(*chain);
    return generate(wanted, TextCode(), model, {}).value();
  }

  void start(const SwarmOptions& with) {
    reader_.reset();
    wire_.reset();
    swarm_ = std::make_unique<Swarm>(with);
    start_reader();
  }
  void start_reader() {
    reader_.reset();
    wire_.reset();
    const std::string address = "reader:" + std::to_string(++readers_);
    SimHost& host = swarm_->network().add_host(address);
    wire_ = swarm_->network().make_wire(key_.id(), address);
    reader_ = std::make_unique<Reader>(
        ReaderOptions{
            .run = RunId{swarm_->run_key().id().bytes}, .self = key_.id(), .launching = {{kSimLaunchAddress}}},
        *wire_, host.loop(), Rng(5));
    reader_->start();
  }
  bool wait(const std::function<bool()>& until) {
    for (int i = 0; i < 20'000 && !until(); ++i) swarm_->run_for(10ms);
    return until();
  }
  Result<Generated> text_of_swarm(const GenerateOptions& wanted, std::function<bool(const std::string&)> shown = {}) {
    if (!wait([this] { return reader_->ready() || reader_->failure(); }) || reader_->failure())
      return reader_->failure() ? Result<Generated>(*reader_->failure()) : make_error(ErrorCode::kBusy, "not ready");
    WaitingText model(*reader_, [this](const auto& until) { return wait(until); });
    return generate(wanted, TextCode(), model, shown);
  }
  // A peer that serves the stage; the index in peers().
  std::vector<std::size_t> peers_of(StageId stage) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < swarm_->peers().size(); ++i) {
      const auto& process = *swarm_->peers()[i];
      if (process.alive && process.peer->executor() && process.peer->executor()->spec().stage == stage)
        found.push_back(i);
    }
    return found;
  }

  int readers_ = 0;
  KeyPair key_ = KeyPair::from_seed({1, 2, 3});
  std::unique_ptr<Swarm> swarm_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Reader> reader_;
};

TEST_F(ReaderTest, TheTextOfASwarmIsThatOfTheSameModelHere) {
  start(options());
  const auto made = text_of_swarm(some_text(60));
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->ids, here(options(), some_text(60)).ids);
  EXPECT_EQ(reader_->text().replays(), 0u);
}

TEST_F(ReaderTest, BeyondTheContextItGoesOnAsItDoesHere) {
  start(options());
  const auto made = text_of_swarm(some_text(250));
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->ids, here(options(), some_text(250)).ids);
}

TEST_F(ReaderTest, APeerThatDiesInTheMiddleOfASentenceIsReplaced) {
  for (const bool silently : {false, true}) {
    start(options());
    std::size_t pieces = 0;
    const auto made = text_of_swarm(some_text(60), [&](const std::string&) {
      if (++pieces == 20)  // all but one of each stage: those with the text among them
        for (std::uint16_t stage = 0; stage < 3; ++stage) swarm_->kill_peer(peers_of(StageId(stage)).front(), silently);
      if (pieces == 40)
        for (std::uint16_t stage = 0; stage < 3; ++stage) (void)swarm_->add_peer();
      return true;
    });
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->ids, here(options(), some_text(60)).ids) << silently;
    EXPECT_GT(reader_->text().replays(), 0u) << silently;
  }
}

TEST_F(ReaderTest, AStageWithoutPeersIsNamed) {
  start(options());
  std::size_t pieces = 0;
  const auto made = text_of_swarm(some_text(60), [&](const std::string&) {
    if (++pieces == 10)
      for (const std::size_t index : peers_of(StageId(1))) swarm_->kill_peer(index);
    return true;
  });
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.code(), ErrorCode::kUnreachable);
  EXPECT_THAT(made.error().message, HasSubstr("stage 1"));
}

TEST_F(ReaderTest, AStageThatNobodyServesIsNotWaitedForWithoutEnd) {
  SwarmOptions with = options();
  with.config.pipeline.rebalance = Rebalance::kOff;  // else a peer of another stage may come
  start(with);
  ASSERT_TRUE(wait([this] { return reader_->ready(); }));
  for (const std::size_t index : peers_of(StageId(2))) swarm_->kill_peer(index);
  swarm_->run_for(60s);
  start_reader();
  EXPECT_TRUE(wait([this] { return reader_->ready() || reader_->failure(); }));
  ASSERT_TRUE(reader_->failure());
  EXPECT_THAT(reader_->failure()->message, HasSubstr("no peer serves stage 2. HINT"));
}

TEST_F(ReaderTest, ARunThatIsOverSaysSo) {
  SwarmOptions with = options();
  with.config.end.tokens = 400;
  start(with);
  ASSERT_TRUE(swarm_->run_to_end(600s));
  EXPECT_TRUE(wait([this] { return reader_->failure().has_value(); }));
  EXPECT_THAT(reader_->failure()->message, HasSubstr("over"));
}

TEST_F(ReaderTest, WhoeverKnowsNoRunHearsNothing) {
  start(options());
  swarm_->kill_launch(true);
  EXPECT_TRUE(wait([this] { return reader_->failure().has_value(); }));
  EXPECT_EQ(reader_->failure()->code, ErrorCode::kUnreachable);
}

TEST_F(ReaderTest, TrainingGoesOnBesideIt) {
  const auto committed = [](const Swarm& swarm) { return swarm.launch()->summary().run_targets; };
  Swarm alone(options());
  alone.run_for(60s);
  start(options());
  while (swarm_->loop().now() - TimePoint{} < 60s) {
    const auto made = text_of_swarm(some_text(20));
    ASSERT_TRUE(made.ok()) << made.error().message;
    reader_->text().restart();
  }
  const double ratio = static_cast<double>(committed(*swarm_)) / static_cast<double>(committed(alone));
  EXPECT_GT(ratio, 0.8) << "texts take an eighth of each device at most";
}

TEST_F(ReaderTest, TheLaunchingProcessShowsATextBehindEverySecondEstimate) {
  SwarmOptions with = options();
  with.config.data.validate_every = 2;
  with.config.report = {.sample_every = 2, .sample_tokens = 12, .sample_prompt = "so"};
  const TextCode bytes;
  with.code = &bytes;
  start(with);
  const auto shown = [this] {
    std::vector<std::string> texts;
    for (const std::string& line : swarm_->notices())
      if (line.find("writes: so") != std::string::npos) texts.push_back(line);
    return texts;
  };
  ASSERT_TRUE(wait([&] { return shown().size() >= 2; }));
  EXPECT_THAT(shown()[0], HasSubstr("step 4 writes: so"));
  for (const std::string& line : shown()) EXPECT_EQ(line.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace shoal
