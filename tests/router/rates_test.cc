// What a process measures of its peers, and the deadlines that follow.
#include "router/rates.h"

#include <gtest/gtest.h>

#include "names.h"
#include "router/policy.h"

namespace shoal {
namespace {

using namespace naming;
constexpr HopKind kF = HopKind::kForward, kB = HopKind::kBackward;

void observe(HopRates& rates, std::uint64_t tag, HopKind kind, Duration took, int times) {
  for (int i = 0; i < times; ++i) rates.observe(session(tag), kind, took);
}

TEST(RatesTest, NothingMeasuredMeansALongDeadline) {
  const HopRates rates;
  EXPECT_EQ(rates.deadline(session(1), kF), HopRates::kDeadlineUnknown);
  EXPECT_EQ(rates.weight(session(1), at(0s)), 1);
  EXPECT_EQ(rates.expected_seconds(session(1), 1000, at(0s)), 0);
}

TEST(RatesTest, WhoSaysThatItsDeviceWorksIsWaitedForWhileNothingIsMeasured) {
  HopRates rates;
  rates.report_working(session(1), true);
  EXPECT_EQ(rates.deadline(session(1), kF), HopRates::kDeadlineFirst);
  observe(rates, 2, kF, 1s, 1);
  EXPECT_LT(rates.deadline(session(1), kF), HopRates::kDeadlineUnknown) << "another one shows what is usual";
}

TEST(RatesTest, DeadlineIsThreeTimesThe95thPercentileAndNotBelowTheMinimum) {
  HopRates rates;
  observe(rates, 1, kF, 100ms, 30);
  EXPECT_EQ(rates.deadline(session(1), kF), 1500ms);
  observe(rates, 1, kB, 1s, 30);
  EXPECT_NEAR(seconds_of(rates.deadline(session(1), kB)), 3.0, 1e-5);
  EXPECT_EQ(rates.deadline(session(1), kF), 1500ms) << "kinds are measured apart";
}

TEST(RatesTest, The95thPercentileIgnoresARareOutlierAndFollowsASlowTail) {
  HopRates rates;
  observe(rates, 1, kF, 1s, 62);
  observe(rates, 1, kF, 20s, 2);  // 2 of 64
  EXPECT_NEAR(seconds_of(rates.deadline(session(1), kF)), 3.0, 1e-5);
  observe(rates, 1, kF, 2s, 6);
  EXPECT_NEAR(seconds_of(rates.deadline(session(1), kF)), 6.0, 1e-5);
}

TEST(RatesTest, ANewPeerGetsTheDeadlineOfTheOthersUntilFourSamples) {
  HopRates rates;
  observe(rates, 1, kF, 2s, 20);
  EXPECT_NEAR(seconds_of(rates.deadline(session(2), kF)), 6.0, 1e-5);
  observe(rates, 2, kF, 1s, 3);
  EXPECT_GT(rates.deadline(session(2), kF), 5s);
  observe(rates, 2, kF, 1s, 1);
  EXPECT_NEAR(seconds_of(rates.deadline(session(2), kF)), 3.0, 1e-5);
}

TEST(RatesTest, ADeadlineNeverExceedsFourTimesTheSlowestHealthyPeer) {
  HopRates rates;
  observe(rates, 1, kF, 400ms, 60);
  for (int i = 0; i < 10; ++i) rates.observe(session(2), kF, 15s, false);  // it was stopped, and delivers late
  EXPECT_EQ(rates.deadline(session(2), kF), 2s) << "max(2 s, 4 x 0.4 s), not 3 x 15 s";
  EXPECT_EQ(rates.deadline(session(1), kF), 1500ms);
  observe(rates, 1, kF, 1s, 60);
  EXPECT_NEAR(seconds_of(rates.deadline(session(2), kF)), 4.0, 1e-5);
}

TEST(RatesTest, OnlyTheLastSamplesCount) {
  HopRates rates;
  observe(rates, 1, kF, 5s, 64);
  observe(rates, 1, kF, 1s, 64);
  EXPECT_NEAR(seconds_of(rates.deadline(session(1), kF)), 3.0, 1e-5);
}

TEST(RatesTest, InFlightCountsSentMinusEndedAndNeverBelowZero) {
  HopRates rates;
  rates.ended(session(1));
  EXPECT_EQ(rates.in_flight(session(1)), 0u);
  rates.sent(session(1));
  rates.sent(session(1));
  rates.ended(session(1));
  EXPECT_EQ(rates.in_flight(session(1)), 1u);
  rates.forget(session(1));
  EXPECT_EQ(rates.in_flight(session(1)), 0u);
}

TEST(RatesTest, ExpectedCompletionGrowsWithWhatIsInFlightAndWithTheSlowerOfComputeAndTransfer) {
  HopRates rates;
  rates.report(session(1), 100ms, 200ms, at(0s));
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(0s)), 0.3, 1e-9);
  rates.sent(session(1));
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(0s)), 0.6, 1e-9);
  rates.set_link(session(1), 1000, 50ms);
  EXPECT_NEAR(rates.expected_seconds(session(1), 1000, at(0s)), 2 * 1.0 + 0.3 + 0.05, 1e-9);
  EXPECT_NEAR(rates.expected_seconds(session(2), 0, at(0s)), 0.3, 1e-9)
      << "an unknown peer is taken for an average one";
}

TEST(RatesTest, WhatWaitsForOthersIsAddedAndForgottenWhenNothingMoreIsHeard) {
  HopRates rates;
  for (const std::uint64_t tag : {1, 2}) rates.report(session(tag), 100ms, 200ms, at(0s));
  rates.report_queue(session(1), 900ms, at(0s));
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(0s)), 0.3 + 0.9, 1e-9);
  EXPECT_NEAR(rates.expected_seconds(session(2), 0, at(0s)), 0.3, 1e-9);
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(2s)), 0.3 + 0.9, 1e-9) << "others go on sending";
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(3s)), 0.3 + 0.45, 1e-6);
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(30s)), 0.3, 1e-6);
  rates.sent(session(1));
  rates.report_queue(session(1), 900ms, at(30s));
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(30s)), 0.6 + 0.6, 1e-6) << "of the 0.9 s, 0.3 s are ours";
}

TEST(RatesTest, AWordOfAQueueCountsAtOnceAndSoonTheMeanOfThem) {
  HopRates rates;
  rates.report(session(1), 100ms, 200ms, at(0s));
  for (int i = 0; i < 100; ++i) rates.report_queue(session(1), 1s, at(i * 100ms));
  rates.report_queue(session(1), 0ms, at(10s));
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(10s)), 0.3, 1e-6) << "the newest report";
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(11s)), 0.3 + 0.9, 0.01) << "what it said on average";
}

TEST(RatesTest, APeerThatLiesAboutItsSpeedIsKnownByItsTimesAfterOneMicrobatch) {
  HopRates rates;
  rates.report(session(3), 1ms, 2ms, at(0s));
  EXPECT_EQ(rates.predicted_seconds(session(3), 0, at(0s)), 0) << "nobody knows how far it is away";
  for (const std::uint64_t tag : {1, 2, 3}) rates.set_link(session(tag), 0, Duration{1});
  for (const std::uint64_t tag : {1, 2}) rates.report(session(tag), 100ms, 200ms, at(0s));
  ASSERT_LT(rates.expected_seconds(session(3), 0, at(0s)), 0.01) << "its word is all that is known";
  rates.finished(session(3), 300ms, rates.predicted_seconds(session(3), 0, at(0s)), at(0s));
  EXPECT_NEAR(rates.expected_seconds(session(3), 0, at(0s)), 0.3, 1e-6);
  EXPECT_NEAR(rates.weight(session(3), at(0s)), rates.weight(session(1), at(0s)), 1e-4);
  for (int i = 0; i < 20; ++i)
    rates.finished(session(3), 300ms, rates.predicted_seconds(session(3), 0, at(0s)), at(0s));
  EXPECT_NEAR(rates.expected_seconds(session(3), 0, at(0s)), 0.3, 1e-6) << "corrected once, not twice";
  rates.finished(session(1), 600ms, 0, at(0s));
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(0s)), 0.3, 1e-6) << "nothing was predicted";
}

TEST(RatesTest, HowItsPredictionsFailedIsForgottenSoThatItIsTriedAgain) {
  HopRates rates;
  rates.report(session(1), 100ms, 200ms, at(0s));
  for (int i = 0; i < 5; ++i) rates.finished(session(1), 4800ms, 0.3, at(0s));
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(0s)), 4.8, 1e-6);
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(0s) + HopRates::kErrorHalves), 0.3 * 4, 1e-6);
  EXPECT_NEAR(rates.expected_seconds(session(1), 0, at(0s) + 10 * HopRates::kErrorHalves), 0.3, 1e-2);
}

TEST(RatesTest, ForwardBackwardAndBothTransfersAreLearntApart) {
  HopRates rates;
  rates.report(session(1), 100ms, 200ms, at(0s));
  rates.set_link(session(1), 1000, 50ms);
  rates.observe_back(session(1), 400ms);
  EXPECT_NEAR(rates.compute_seconds(session(1), at(0s)), 0.3, 1e-9);
  EXPECT_NEAR(rates.transfer_seconds(session(1), 500), 0.5 + 0.4, 1e-9);
  EXPECT_NEAR(rates.rtt_seconds(session(1)), 0.05, 1e-9);
  EXPECT_NEAR(rates.expected_seconds(session(1), 500, at(0s)), 0.5 + 0.3 + 0.4 + 0.05, 1e-9) << "one behind the other";
  rates.sent(session(1));
  rates.sent(session(1));
  EXPECT_NEAR(rates.expected_seconds(session(1), 500, at(0s)), 2 * 0.5 + 1.25, 1e-9) << "those before it overlap";
}

TEST(RatesTest, OfTwoEqualPeersTheOneThatWorksForOthersIsChosenLess) {
  const auto policy = make_rendezvous_policy();
  const auto chosen = [&](Duration queue) {
    HopRates rates;
    for (const std::uint64_t tag : {1, 2}) rates.report(session(tag), 100ms, 200ms, at(0s));
    rates.report_queue(session(1), queue, at(0s));
    int times = 0;
    for (std::uint64_t sample = 0; sample < 400; ++sample) {
      std::vector<Candidate> candidates;
      for (const std::uint64_t tag : {1, 2})
        candidates.push_back({session(tag), rates.weight(session(tag), at(0s)),
                              rates.expected_seconds(session(tag), 0, at(0s)), 0, false});
      times += policy->pick(SampleId(sample), candidates) == session(1);
    }
    return times;
  };
  EXPECT_NEAR(chosen(0ms), 200, 60);
  EXPECT_EQ(chosen(900ms), 0);
}

TEST(RatesTest, WeightIsTheInverseOfMeasuredCompute) {
  HopRates rates;
  rates.report(session(1), 50ms, 50ms, at(0s));
  rates.report_queue(session(1), 9s, at(0s));
  rates.report(session(2), 100ms, 300ms, at(0s));
  EXPECT_NEAR(rates.weight(session(1), at(0s)), 10, 1e-9) << "backlog does not change it";
  EXPECT_NEAR(rates.weight(session(2), at(0s)), 2.5, 1e-9);
  EXPECT_NEAR(rates.weight(session(3), at(0s)), 4, 1e-9) << "mean compute 0.25 s";
}

}  // namespace
}  // namespace shoal
