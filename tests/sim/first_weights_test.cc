// A run that begins from a model that exists: the launching process gives its parts away, and peers each other.
#include <gtest/gtest.h>

#include "common/log.h"
#include "sim/checkers.h"
#include "sim/swarm.h"
#include "stages/integer_executor.h"

namespace shoal {
namespace {

// Whole numbers that differ between stages. `damaged`: from the second reading of a stage on it says something else.
class Numbers final : public WeightSource {
 public:
  std::uint64_t floats(const StageSpec&) const override { return kIntegerParameters; }
  Status read(const StageSpec& spec, std::uint64_t first, std::span<float> out) const override {
    if (gone) return make_error(ErrorCode::kIo, "the folder is gone");
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = value_at(spec.stage, first + i) + (damaged ? 1 : 0);
    ++reads;
    return {};
  }
  static float value_at(StageId stage, std::uint64_t i) { return static_cast<float>(1 + stage.value * 10 + i % 7); }
  mutable int reads = 0;
  bool damaged = false, gone = false;
};

class FirstWeightsTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kError); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }

  // With many inner steps no round comes before the run's end.
  SwarmOptions options(std::uint64_t inner_steps = 4) {
    SwarmOptions options;
    options.config = small_config(RuleId::kDiloco, options.stages, 200);
    options.config.sync.inner_steps = inner_steps;
    const ModelSpec model = options.config.model_spec();
    first = *measure_first_states(*split_model(model, options.stages), numbers, [](auto...) {});
    for (const FirstState& state : first.states) options.config.model.weights.push_back(state.digest);
    options.first = &first;
    return options;
  }
  static bool begins_from_numbers(const Swarm::HostedPeer& process) {
    StageExecutor* executor = process.peer->executor();
    if (executor == nullptr) return false;
    executor->arena().pull(ArenaRole::kAnchor);
    const std::span<const float> anchor = executor->arena().span(ArenaRole::kAnchor);
    for (std::size_t i = 0; i < anchor.size(); ++i)
      if (anchor[i] != Numbers::value_at(executor->spec().stage, i)) return false;
    return true;
  }
  static std::size_t serving(const Swarm& swarm) {
    std::size_t count = 0;
    for (const auto& event : swarm.events()) count += event.event == EventKind::kServing ? 1 : 0;
    return count;
  }

  static void run_until_all_serve(Swarm& swarm) {
    for (int tick = 0; tick < 6000 && serving(swarm) < swarm.peers().size(); ++tick) swarm.run_for(10ms);
  }

  Numbers numbers;
  FirstStates first;
};

TEST_F(FirstWeightsTest, EveryPeerBeginsFromThemAndTheRunEnds) {
  Swarm swarm(options(1000));
  run_until_all_serve(swarm);
  ASSERT_EQ(serving(swarm), swarm.peers().size());
  for (const auto& process : swarm.peers()) EXPECT_TRUE(begins_from_numbers(*process));
  EXPECT_TRUE(swarm.run_to_end(600s));
}

TEST_F(FirstWeightsTest, AJoinerTakesThemFromAPeerThatServes) {
  Swarm swarm(options(1000));
  run_until_all_serve(swarm);
  numbers.gone = true;
  const std::size_t joiner = swarm.add_peer();
  run_until_all_serve(swarm);
  EXPECT_TRUE(begins_from_numbers(*swarm.peers()[joiner]));
}

TEST_F(FirstWeightsTest, WhatTheManifestDoesNotNameIsNotLoaded) {
  const SwarmOptions with = options();
  numbers.damaged = true;
  Swarm swarm(with);
  swarm.run_for(60s);
  EXPECT_EQ(serving(swarm), 0u);
}

TEST_F(FirstWeightsTest, APeerThatComesAfterARoundNeedsThemNoMore) {
  Swarm swarm(options());
  const auto committed = [&] {
    for (const auto& event : swarm.events())
      if (event.event == EventKind::kRoundCommit) return true;
    return false;
  };
  for (int tick = 0; tick < 3000 && !committed(); ++tick) swarm.run_for(10ms);
  ASSERT_TRUE(committed());
  numbers.gone = true;
  swarm.kill_peer(0);
  swarm.restart_peer(0);
  EXPECT_TRUE(swarm.run_to_end(600s));
}

}  // namespace
}  // namespace shoal
