// Members that compute and say what is not so, in their beats and reports.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "events/session_end.h"
#include "sim/checkers.h"
#include "tests/sim/heard_lines.h"
#include "tests/sim/lying_wire.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

constexpr std::uint64_t kSeeds = 5;

// The second peer of the first stage.
SwarmOptions with_liar(RuleId rule, std::uint16_t replicas, std::uint64_t seed, LyingWire::Tongue tongue) {
  SwarmOptions options;
  options.seed = seed;
  options.stages = 2;
  options.replicas = replicas;
  options.config = small_config(rule, 2, 300);
  options.wires = one_lies(seed, 2, std::move(tongue));
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

}  // namespace
}  // namespace shoal
