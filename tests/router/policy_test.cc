// Weighted rendezvous hashing: shares, churn, spill-over, suspects.
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

}  // namespace
}  // namespace shoal
