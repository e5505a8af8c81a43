// Weighted rendezvous hashing: shares, churn, spill-over, suspects. Then its rivals.
#include "router/policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "common/rng.h"
#include "names.h"

namespace shoal {
namespace {

using namespace naming;

std::vector<Candidate> peers(const std::vector<double>& weights) {
  std::vector<Candidate> result;
  for (std::size_t i = 0; i < weights.size(); ++i) result.push_back({session(i + 1), weights[i], 0, 0, false});
  return result;
}

TEST(PolicyTest, NobodyIsChosenFromNobody) { EXPECT_EQ(make_rendezvous_policy()->pick(SampleId(1), {}), std::nullopt); }

TEST(PolicyTest, SharesFollowWeights) {
  const auto policy = make_rendezvous_policy();
  const std::vector<double> weights = {1, 2, 3, 6, 12};
  const auto candidates = peers(weights);
  constexpr int kSamples = 24000;
  std::map<Session, int> counts;
  Rng rng(20260101);
  for (int i = 0; i < kSamples; ++i) ++counts[*policy->pick(SampleId(rng.next()), candidates)];
  double chi2 = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double expected = kSamples * weights[i] / 24;
    chi2 += std::pow(counts[session(i + 1)] - expected, 2) / expected;
  }
  EXPECT_LT(chi2, 18.5);  // 4 degrees of freedom: exceeded by chance once in a thousand seeds
}

TEST(PolicyTest, ASampleMeetsTheSamePeerWhateverTheOrderOfTheList) {
  const auto policy = make_rendezvous_policy();
  auto candidates = peers({1, 1, 2, 2, 1});
  const auto original = candidates;
  Rng rng(3);
  for (std::uint64_t sample = 0; sample < 500; ++sample) {
    rng.shuffle(candidates);
    EXPECT_EQ(policy->pick(SampleId(sample), candidates), policy->pick(SampleId(sample), original));
  }
}

TEST(PolicyTest, ChurnMovesOnlyTheShareOfWhoLeftOrCame) {
  const auto policy = make_rendezvous_policy();
  const auto all = peers({1, 2, 1, 3, 1});
  auto without = all;
  without.erase(without.begin() + 3);
  int moved = 0;
  constexpr int kSamples = 8000;
  for (int i = 0; i < kSamples; ++i) {
    const Session before = *policy->pick(SampleId(static_cast<std::uint64_t>(i)), all);
    const Session after = *policy->pick(SampleId(static_cast<std::uint64_t>(i)), without);
    if (before == after) continue;
    ++moved;
    ASSERT_EQ(before, session(4)) << "a sample moved though its peer stayed";
  }
  EXPECT_NEAR(moved, kSamples * 3.0 / 8, 200);
}

TEST(PolicyTest, AChoiceThatIsBehindSpillsOverToTheNextInHashOrder) {
  const auto policy = make_rendezvous_policy({0.25});
  auto candidates = peers({1, 1, 1});
  for (std::uint64_t sample = 0; sample < 200; ++sample) {
    for (Candidate& c : candidates) c.expected_seconds = 1.0;
    const Session first = *policy->pick(SampleId(sample), candidates);
    for (Candidate& c : candidates)
      if (c.session == first) c.expected_seconds = 1.24;
    EXPECT_EQ(policy->pick(SampleId(sample), candidates), first) << "within the slack";
    for (Candidate& c : candidates)
      if (c.session == first) c.expected_seconds = 1.3;
    const Session second = *policy->pick(SampleId(sample), candidates);
    EXPECT_NE(second, first);
    double best = 0;
    Session runner_up;
    for (const Candidate& c : candidates)
      if (c.session != first && rendezvous_score(SampleId(sample), c.session, c.weight) > best)
        best = rendezvous_score(SampleId(sample), c.session, c.weight), runner_up = c.session;
    EXPECT_EQ(second, runner_up);
  }
}

TEST(PolicyTest, ASuspectGetsAProbeOnlyWhenNothingOfOursIsInFlightThere) {
  const auto policy = make_rendezvous_policy();
  auto candidates = peers({1000, 1});
  candidates[0].suspected = true;
  candidates[0].in_flight = 1;
  for (std::uint64_t sample = 0; sample < 100; ++sample)
    EXPECT_EQ(policy->pick(SampleId(sample), candidates), session(2));
  candidates[0].in_flight = 0;
  int probes = 0;
  for (std::uint64_t sample = 0; sample < 100; ++sample)
    probes += policy->pick(SampleId(sample), candidates) == session(1);
  EXPECT_GT(probes, 90);
  candidates[0].resting = true;
  for (std::uint64_t sample = 0; sample < 100; ++sample)
    EXPECT_EQ(policy->pick(SampleId(sample), candidates), session(2)) << "no probe is due";
  candidates[0].resting = false;
  candidates[0].in_flight = candidates[1].in_flight = 1;
  candidates[1].suspected = true;
  EXPECT_NE(policy->pick(SampleId(1), candidates), std::nullopt) << "suspects are better than nobody";
}

TEST(PolicyTest, WhoKnowsTheSampleGoesFirstUnlessItIsFarBehind) {
  const auto policy = make_rendezvous_policy();
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    std::vector<Candidate> candidates = peers({1, 1, 1});
    for (Candidate& c : candidates) c.expected_seconds = 1;
    candidates[2].known = true;
    candidates[2].expected_seconds = 1.7;
    EXPECT_EQ(policy->pick(SampleId(sample), candidates), session(3));
    candidates[2].expected_seconds = 1.8;
    EXPECT_NE(policy->pick(SampleId(sample), candidates), session(3));
  }
}

// ---- rivals ----

// How often each is chosen, when what was chosen is done at once.
std::map<Session, int> choices(RoutingPolicy& policy, const std::vector<Candidate>& candidates, int times) {
  std::map<Session, int> counts;
  for (int i = 0; i < times; ++i) ++counts[*policy.pick(SampleId(static_cast<std::uint64_t>(i)), candidates)];
  return counts;
}

class RivalsTest : public testing::TestWithParam<RoutingId> {};

TEST_P(RivalsTest, ChoosesNobodyFromNobodyAndPassesOverASuspectWhileAnotherMayBeAsked) {
  const auto policy = make_policy(GetParam(), 7);
  EXPECT_EQ(policy->pick(SampleId(1), {}), std::nullopt);
  auto candidates = peers({1, 1, 1});
  candidates[0].suspected = candidates[0].resting = true;
  EXPECT_FALSE(choices(*policy, candidates, 300).contains(session(1)));
  for (Candidate& c : candidates) c.suspected = c.resting = true;
  EXPECT_NE(policy->pick(SampleId(1), candidates), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Policies, RivalsTest,
                         testing::Values(RoutingId::kRendezvous, RoutingId::kIwrr, RoutingId::kTwoChoices,
                                         RoutingId::kLeast, RoutingId::kFlow),
                         [](const auto& info) {
                           std::string name(kRoutingNames[static_cast<std::size_t>(info.param)]);
                           std::erase(name, '-');
                           return name;
                         });

TEST(IwrrTest, TurnsFollowMeasuredTimesAndANewcomerDoesNotCatchUp) {
  const auto policy = make_iwrr_policy();
  auto candidates = peers({1, 1});
  candidates[0].hop_seconds = 0.1;
  candidates[1].hop_seconds = 0.3;
  const auto counts = choices(*policy, candidates, 4000);
  EXPECT_NEAR(counts.at(session(1)), 3000, 5);
  candidates.push_back({session(3)});
  candidates.back().hop_seconds = 0.1;
  EXPECT_NEAR(choices(*policy, candidates, 700).at(session(3)), 300, 5) << "its turns begin where the others' are";
}

TEST(IwrrTest, WhatWasNotMeasuredCountsForASecond) {
  const auto policy = make_iwrr_policy();
  auto candidates = peers({1, 1});
  candidates[0].hop_seconds = 0.1;
  EXPECT_NEAR(choices(*policy, candidates, 1100).at(session(2)), 100, 5);
}

TEST(TwoChoicesTest, TheSlowestOfAllIsNeverAskedAndASeedIsAnOrder) {
  auto candidates = peers({1, 1, 1, 1});
  for (std::size_t i = 0; i < 4; ++i) candidates[i].expected_seconds = static_cast<double>(i);
  const auto counts = choices(*make_two_choices_policy(3), candidates, 6000);
  EXPECT_FALSE(counts.contains(session(4))) << "it loses against each other one";
  EXPECT_NEAR(counts.at(session(1)), 3000, 200);  // it is drawn in half of the pairs
  EXPECT_NEAR(counts.at(session(3)), 1000, 150);
  EXPECT_EQ(choices(*make_two_choices_policy(3), candidates, 6000), counts);
  EXPECT_NE(choices(*make_two_choices_policy(4), candidates, 6000), counts);
}

TEST(LeastTest, TheFirstToBeDoneIsAskedAndEqualOnesShare) {
  auto candidates = peers({1, 1, 1});
  candidates[1].expected_seconds = 1;
  const auto counts = choices(*make_least_policy(), candidates, 2000);
  EXPECT_FALSE(counts.contains(session(2)));
  EXPECT_NEAR(counts.at(session(1)), 1000, 150);
}

TEST(FlowTest, WorseOnesAreTakenWhileItIsHotAndAgainWhenPeersCome) {
  const auto policy = make_flow_policy(5);
  auto candidates = peers({1, 1, 1});
  for (std::size_t i = 0; i < 3; ++i) candidates[i].compute_seconds = 0.1 * static_cast<double>(i + 1);
  EXPECT_GT(choices(*policy, candidates, 100)[session(2)], 5);
  EXPECT_GT(choices(*policy, candidates, 5000)[session(1)], 4500);
  EXPECT_EQ(choices(*policy, candidates, 100)[session(2)], 0) << "cold";
  candidates.push_back({session(4)});
  candidates.back().compute_seconds = 0.5;
  EXPECT_GT(choices(*policy, candidates, 100)[session(2)], 3) << "heated";
}

TEST(FlowTest, CostIsHalfOfComputeAndLatencyAndTheTransfers) {
  const auto policy = make_flow_policy(5);
  auto candidates = peers({1, 1});
  candidates[0].compute_seconds = 1;
  candidates[0].rtt_seconds = 0.2;
  candidates[1].transfer_seconds = 0.7;
  (void)choices(*policy, candidates, 5000);  // cold from now on
  EXPECT_EQ(choices(*policy, candidates, 100)[session(1)], 100) << "0.6 s and 0.7 s";
  candidates[1].transfer_seconds = 0.5;
  EXPECT_EQ(choices(*policy, candidates, 100)[session(2)], 100);
}

}  // namespace
}  // namespace shoal
