// A run that begins from a model that exists: the launching process gives its parts away, and peers each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "sim/checkers.h"
#include "sim/swarm.h"
#include "stages/integer_executor.h"
#include "tests/common/scratch_folder.h"
#include "tests/quiet_log.h"

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

class FirstWeightsTest : public Quiet<testing::Test> {
 protected:
  // With many inner steps no round comes before the run's end.
  SwarmOptions options(std::uint64_t inner_steps = 4) {
    SwarmOptions options;
    options.config = small_config(RuleId::kDiloco, options.stages, 200);
    options.config.sync.inner_steps = inner_steps;
    const ModelSpec model = options.config.model_spec();
    first =
        *measure_first_states(*split_model(model, options.stages), {std::shared_ptr<void>(), &numbers}, [](auto...) {});
    for (const auto& part : first.parts) options.config.model.weights.push_back(part.state.digest);
    options.first = &first;
    return options;
  }
  static bool has_numbers(const Swarm::HostedPeer& process, ArenaRole role) {
    StageExecutor* executor = process.peer->executor();
    if (executor == nullptr) return false;
    const std::span<const float> values = executor->arena().span(role);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != Numbers::value_at(executor->spec().stage, i)) return false;
    return true;
  }
  static bool begins_from_numbers(const Swarm::HostedPeer& process) { return has_numbers(process, ArenaRole::kAnchor); }
  static std::size_t serving(const Swarm& swarm) {
    std::size_t count = 0;
    for (const auto& event : swarm.events()) count += event.event == EventKind::kServing ? 1 : 0;
    return count;
  }

  static void run_until_all_serve(Swarm& swarm) {
    for (int tick = 0; tick < 6000 && serving(swarm) < swarm.peers().size(); ++tick) swarm.run_for(10ms);
  }
  static bool committed(const Swarm& swarm) {
    return std::ranges::any_of(swarm.events(),
                               [](const auto& event) { return event.event == EventKind::kRoundCommit; });
  }
  static void run_until_committed(Swarm& swarm) {
    for (int tick = 0; tick < 6000 && !committed(swarm); ++tick) swarm.run_for(10ms);
    ASSERT_TRUE(committed(swarm));
  }
  // Nobody serves with numbers that are not those of the manifest.
  void expect_others_are_refused(const SwarmOptions& with) {
    numbers.damaged = true;
    Swarm swarm(with);
    swarm.run_for(60s);
    EXPECT_EQ(serving(swarm), 0u);
  }
  static void run_until_one_more_serves(Swarm& swarm) {
    const std::size_t before = serving(swarm);
    for (int tick = 0; tick < 3000 && serving(swarm) == before; ++tick) swarm.run_for(10ms);
    EXPECT_GT(serving(swarm), before);
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

TEST_F(FirstWeightsTest, WhatTheManifestDoesNotNameIsNotLoaded) { expect_others_are_refused(options()); }

TEST_F(FirstWeightsTest, APeerThatComesAfterARoundNeedsThemNoMore) {
  Swarm swarm(options());
  run_until_committed(swarm);
  numbers.gone = true;
  swarm.kill_peer(0);
  swarm.restart_peer(0);
  EXPECT_TRUE(swarm.run_to_end(600s));
}

// The stages train adapters beside the numbers.
class AdaptersBaseTest : public FirstWeightsTest {
 protected:
  SwarmOptions options() {
    SwarmOptions options = FirstWeightsTest::options();
    options.config.model.lora_rank = 1;
    options.base_folder = folder_.path();
    return options;
  }
  static bool has_base(const Swarm::HostedPeer& process) { return has_numbers(process, ArenaRole::kBase); }
  // What this peer keeps.
  std::vector<std::string> kept(const Swarm::HostedPeer& process) const {
    std::vector<std::string> paths;
    std::error_code failure;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/" + process.address, failure))
      paths.push_back(entry.path().string());
    return paths;
  }
  ScratchFolder folder_;
};

TEST_F(AdaptersBaseTest, EveryPeerHasItAndTrainsBesideIt) {
  Swarm swarm(options());
  run_until_committed(swarm);
  for (const auto& process : swarm.peers()) {
    EXPECT_TRUE(has_base(*process));
    EXPECT_EQ(kept(*process).size(), 1u) << process->address;
  }
  ASSERT_TRUE(swarm.run_to_end(600s));
  EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
}

TEST_F(AdaptersBaseTest, AJoinerTakesItFromPeersLongAfterTheFolderIsGone) {
  Swarm swarm(options());
  run_until_committed(swarm);
  numbers.gone = true;
  const std::size_t joiner = swarm.add_peer();
  run_until_one_more_serves(swarm);
  EXPECT_TRUE(has_base(*swarm.peers()[joiner]));
}

TEST_F(AdaptersBaseTest, IsReadAgainWhereItIsKeptAndFetchedAgainWhereItIsDamaged) {
  for (const bool damaged : {false, true}) {
    numbers.gone = false;
    const SwarmOptions with = options();
    Swarm swarm(with);
    run_until_committed(swarm);
    swarm.kill_peer(0);
    const std::string path = kept(*swarm.peers()[0]).at(0);
    if (damaged) std::filesystem::resize_file(path, std::filesystem::file_size(path) - 4);
    const int reads = numbers.reads;
    numbers.gone = !damaged;  // nobody needs to read the folder
    swarm.restart_peer(0);
    run_until_one_more_serves(swarm);
    EXPECT_TRUE(has_base(*swarm.peers()[0])) << damaged;
    const auto& notices = swarm.peers()[0]->notices;
    const bool told = std::ranges::any_of(
        notices, [](const std::string& notice) { return notice.find("damaged") != std::string::npos; });
    EXPECT_EQ(told, damaged);
    EXPECT_EQ(numbers.reads == reads, !damaged);
  }
}

TEST_F(AdaptersBaseTest, AnotherOneIsNotTrainedBeside) { expect_others_are_refused(options()); }

}  // namespace
}  // namespace shoal
