// Members that compute and say what is not so, in their beats and reports.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "events/session_end.h"
#include "router/loss_claim.h"
#include "sim/checkers.h"
#include "tests/sim/heard_lines.h"
#include "tests/sim/lying_wire.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

constexpr std::uint64_t kSeeds = 5;

// The second peer of the first stage.
SwarmOptions with_liar(RuleId rule, std::uint16_t replicas, std::uint64_t seed, LyingWire::Tongue tongue,
                       LyingWire::Ears ears = {}) {
  SwarmOptions options;
  options.seed = seed;
  options.stages = 2;
  options.replicas = replicas;
  options.config = small_config(rule, 2, 300);
  options.wires = one_lies(seed, 2, std::move(tongue), std::move(ears));
  return options;
}

std::uint64_t liar_tag(std::uint64_t seed) { return Session::of(Swarm::peer_key(seed, 2).id(), 1).peer_tag; }

// Why sessions ended against their will: the liar's, and that nobody else's did.
std::vector<std::string> ends_of_the_liar(const Swarm& swarm, std::uint64_t seed) {
  std::vector<std::string> causes;
  for (const SimEvent& e : swarm.events()) {
    if (e.event != EventKind::kSessionOver || !is_fault(e.cause)) continue;
    EXPECT_EQ(e.about->peer_tag, liar_tag(seed)) << e.cause;
    causes.push_back(e.cause);
  }
  return causes;
}

std::size_t abandoned(const Swarm& swarm) {
  return static_cast<std::size_t>(
      std::ranges::count_if(swarm.events(), [](const SimEvent& e) { return e.event == EventKind::kRoundAbandon; }));
}

class FalseWeightTest : public testing::TestWithParam<std::pair<RuleId, std::uint16_t>> {};

// Its digest is the right one, so that nothing but the weight speaks against it.
TEST_P(FalseWeightTest, OnTheRightDigestEndsItsSessionByNameAtTheSecondTimeAndRoundsGoOn) {
  const auto [rule, replicas] = GetParam();
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const HeardLines heard;
    Swarm swarm(with_liar(rule, replicas, seed, [](Message& message) {
      if (auto* report = std::get_if<RoundReport>(&message); report && report->kind == ReportKind::kAgreed)
        ++report->weight;
      return true;
    }));
    ASSERT_TRUE(swarm.run_to_end(600s));
    EXPECT_EQ(swarm.summary().committed, 300u);
    const auto ends = ends_of_the_liar(swarm, seed);
    ASSERT_GE(ends.size(), 1u);
    for (const std::string& cause : ends) EXPECT_NE(cause.find("not that of the contributions"), std::string::npos);
    EXPECT_GE(heard.with("session ends at the second time"), 1u);
    EXPECT_LE(abandoned(swarm), 4 * ends.size());
    for (const std::string& broken : check_end(swarm)) ADD_FAILURE() << broken;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, FalseWeightTest,
                         testing::Values(std::pair(RuleId::kDiloco, 2), std::pair(RuleId::kDiloco, 4),
                                         std::pair(RuleId::kAllreduce, 2), std::pair(RuleId::kAllreduce, 4)));

// It says that it has every commit, and its rounds have none of these entries, in a run of more microbatches than may
// be issued above an entry that is not decided.
TEST(WithheldEntriesTest, EndTheSessionThatAcknowledgedThemAndTheRunGoesOn) {
  constexpr std::uint64_t kMicrobatches = 6000;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(seed);
    const auto acknowledge = [](Message& message) -> std::optional<Message> {
      auto* commit = std::get_if<Commit>(&message);
      if (commit == nullptr || commit->items.empty()) return std::nullopt;
      CommitAck ack;
      for (const CommitItem& item : std::exchange(commit->items, {}))
        ack.items.push_back({item.microbatch, item.path.front(), CommitState::kCommitted});
      return ack;
    };
    SwarmOptions options = with_liar(RuleId::kDiloco, 2, seed, {}, acknowledge);
    options.config.end.tokens = kMicrobatches * options.config.targets_per_microbatch();
    Swarm swarm(options);
    ASSERT_TRUE(swarm.run_to_end(1800s));
    EXPECT_EQ(swarm.summary().committed, kMicrobatches);
    const auto ends = ends_of_the_liar(swarm, seed);
    ASSERT_GE(ends.size(), 1u);
    EXPECT_NE(ends.front().find("rounds that they belong to"), std::string::npos) << ends.front();
    EXPECT_GE(swarm.summary().lost, 1u);
    EXPECT_LE(swarm.summary().lost, ends.size() * 100);
    for (const std::string& broken : check_end(swarm)) ADD_FAILURE() << broken;
  }
}

// What a peer of the last stage says of the loss of every microbatch, and of every evaluation.
struct FalseLoss {
  const char* why;
  void (*tell)(Gradient&);
};
const FalseLoss kFalseLosses[] = {
    {"a loss of 1000000000000 targets", [](Gradient& said) { said.targets = 1'000'000'000'000; }},
    {"a loss of 0 targets", [](Gradient& said) { said.targets = 0; }},
    {"a mean loss of -1 nats", [](Gradient& said) { said.loss_sum = -static_cast<double>(said.targets); }},
    {"which is not between 0 and 69.5", [](Gradient& said) { said.loss_sum = 1e9; }},
    {"a mean loss of nan nats", [](Gradient& said) { said.loss_sum = std::nan(""); }},
};

class FalseLossTest : public testing::TestWithParam<FalseLoss> {};

TEST_P(FalseLossTest, IsRefusedByNameAndReachesNeitherTrainLinesNorValidation) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const HeardLines heard;
    SwarmOptions options;
    options.seed = seed;
    options.stages = 2;
    options.replicas = 2;
    options.config = small_config(RuleId::kDiloco, 2, 300);
    options.wires = one_lies(seed, 3, [](Message& message) {  // of the last stage
      if (auto* said = std::get_if<Gradient>(&message)) GetParam().tell(*said);
      return true;
    });
    Swarm swarm(options);
    ASSERT_TRUE(swarm.run_to_end(600s));
    EXPECT_EQ(swarm.summary().committed, 300u);
    EXPECT_EQ(swarm.summary().lost, 0u);
    EXPECT_GE(
        heard.with(std::string("session ") + short_name(swarm.peers()[3]->peer->session()) + " is refused: it says"),
        1u);
    EXPECT_GE(heard.with(GetParam().why), 1u);
    ASSERT_TRUE(swarm.summary().validation_loss);
    EXPECT_GE(*swarm.summary().validation_loss, 0);
    EXPECT_LE(*swarm.summary().validation_loss, 4) << "the integer executor's losses are below it";
    for (const SimEvent& e : swarm.events()) {
      if (e.event != EventKind::kTrain) continue;
      EXPECT_TRUE(*e.loss >= 0 && *e.loss <= 4) << *e.loss;
    }
    for (const std::string& broken : check_end(swarm)) ADD_FAILURE() << broken;
  }
}

INSTANTIATE_TEST_SUITE_P(Words, FalseLossTest, testing::ValuesIn(kFalseLosses),
                         [](const auto& one) { return std::to_string(one.index); });

}  // namespace
}  // namespace shoal
