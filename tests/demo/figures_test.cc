#include "demo/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "events/event_log.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using Commit = DemoEvents::Commit;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

// `rate` targets in every second of [from, to), one commit in the middle of each.
void add_seconds(std::vector<Commit>& commits, int from, int to, std::uint64_t rate) {
  for (int second = from; second < to; ++second) commits.push_back({100.0 + second + 0.5, rate});
}

TEST(RateBinsTest, HoldTheTargetsOfEachWholeSecond) {
  const std::vector<Commit> commits = {{99.9, 1}, {100.0, 2}, {100.99, 4}, {101.0, 8}, {102.5, 16}, {103.0, 32}};
  EXPECT_THAT(rate_bins(commits, 100, 103.9), ElementsAre(6, 8, 16));
}

TEST(RateBinsTest, OfAnEmptyOrReversedSpanAreNone) {
  EXPECT_TRUE(rate_bins({{100, 1}}, 100, 100).empty());
  EXPECT_TRUE(rate_bins({{100, 1}}, 101, 99).empty());
}

TEST(MedianTest, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median_of({}), 0);
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1, 2, 3}), 2.5);
}

TEST(UndisturbedRateTest, LeavesOutTheBinsThatAFaultTouches) {
  std::vector<Commit> commits;
  add_seconds(commits, 0, 4, 100);
  add_seconds(commits, 4, 9, 10);
  EXPECT_EQ(undisturbed_rate(commits, 100, 109, {}), 10);
  EXPECT_EQ(undisturbed_rate(commits, 100, 109, {{104.2, 109}}), 100);
}

TEST(DisturbanceTest, LastsUntilTheRateAndWhatWasTakenAwayAreBack) {
  EXPECT_EQ(disturbance_of(100, 3, 125, 175).to, 125) << "the peer was away for longer than the rate was low";
  EXPECT_EQ(disturbance_of(100, 30, 125, 175).to, 130);
  EXPECT_EQ(disturbance_of(100, {}, 125, 175).to, 175);
  EXPECT_EQ(disturbance_of(100, 3, {}, 175).to, 175);
  std::vector<Commit> commits;
  add_seconds(commits, 0, 10, 100);
  add_seconds(commits, 10, 30, 95);  // recovered at once, while a peer is still away
  add_seconds(commits, 30, 35, 100);
  EXPECT_EQ(undisturbed_rate(commits, 100, 135, {disturbance_of(110, 0, 130, 135)}), 100);
}

TEST(RecoveryTest, IsTheFirstOfThreeBinsInARowAtNineTenths) {
  std::vector<Commit> commits;
  add_seconds(commits, 0, 10, 100);
  add_seconds(commits, 10, 13, 40);
  add_seconds(commits, 13, 15, 95);  // two good bins, then one that is not
  add_seconds(commits, 15, 16, 89);
  add_seconds(commits, 16, 20, 90);
  const auto recovered = recovered_after(commits, 110, 120, 100);
  ASSERT_TRUE(recovered);
  EXPECT_EQ(*recovered, 6);
}

TEST(RecoveryTest, BinsAreCountedFromTheSignal) {
  std::vector<Commit> commits;
  for (int i = 0; i < 40; ++i) commits.push_back({100.6 + 0.25 * i, 25});
  EXPECT_EQ(recovered_after(commits, 100.6, 108, 100), std::optional<double>(0));
}

TEST(RecoveryTest, IsNoneWhenTheRateStaysLow) {
  std::vector<Commit> commits;
  add_seconds(commits, 0, 10, 100);
  add_seconds(commits, 10, 30, 89);
  EXPECT_EQ(recovered_after(commits, 110, 130, 100), std::nullopt);
}

TEST(RecoveryTest, IsNoneWhenTheRunEndsBeforeTheThirdBin) {
  std::vector<Commit> commits;
  add_seconds(commits, 0, 30, 100);
  EXPECT_EQ(recovered_after(commits, 110, 112.9, 100), std::nullopt);
  EXPECT_EQ(recovered_after(commits, 110, 113.0, 100), std::optional<double>(0));
}

TEST(FaultCostTest, IsTheAreaBelowTheRateBeforeInSecondsOfIt) {
  std::vector<Commit> commits;
  add_seconds(commits, 0, 15, 100);
  add_seconds(commits, 15, 19, 25);  // a dip that begins 5 s after the signal
  add_seconds(commits, 19, 60, 100);
  EXPECT_EQ(recovered_after(commits, 110, 160, 100), std::optional<double>(0)) << "it does not see the dip";
  const auto cost = cost_of(commits, 110, 160, 100);
  ASSERT_TRUE(cost);
  EXPECT_DOUBLE_EQ(cost->seconds, 3);
  EXPECT_EQ(cost->window, 30);
}

TEST(FaultCostTest, LooksNoFurtherThanTheEndAndIsNeverNegative) {
  std::vector<Commit> commits;
  add_seconds(commits, 0, 10, 100);
  add_seconds(commits, 10, 60, 120);
  EXPECT_EQ(cost_of(commits, 110, 160, 100)->seconds, 0);
  EXPECT_EQ(cost_of(commits, 110, 122.5, 100)->window, 12.5);
  EXPECT_FALSE(cost_of(commits, 110, 110.5, 100)) << "less than a second is left";
  EXPECT_FALSE(cost_of(commits, 110, 160, 0)) << "nothing was committed before";
}

constexpr Session kLaunch{1, 1}, kPeer{2, 1};

std::string line_of(const char* role, const Session& who, double time, const EventRecord& record) {
  return event_line({.role = role, .run = {}, .peer = {}, .session = who}, WallTime(from_seconds(time)), record);
}

std::string launch_text() {
  const auto commit = [](double time, std::uint64_t serial) {
    return line_of("trainer", kLaunch, time, commit_event({0xaa, serial}, {{kPeer, serial + 1}}, 5.5, 512));
  };
  const auto said = [](double time, const EventRecord& record) { return line_of("trainer", kLaunch, time, record); };
  return commit(100.5, 0) + commit(101.5, 1) + commit(102.5, 0) +
         said(103, {.event = EventKind::kTrain, .step = StepId{1}, .loss = 5.25, .targets = 1024}) +
         said(103, {.event = EventKind::kLost,
                    .microbatch = MicrobatchId{0xaa, 0},
                    .stage = StageId{2},
                    .entry_name = EntryName{kPeer, 1},
                    .cause = "x"}) +
         said(103.5, session_over_event({3, 1}, StageId{2}, "no sign of life")) +
         said(103.6, session_over_event({4, 1}, StageId{2}, "left")) +
         said(104, {.event = EventKind::kBytes, .sent = 70, .received = 5}) +
         said(105, {.event = EventKind::kValidation, .loss = 4.5, .targets = 100});
}
std::string peer_text() {
  const auto bytes = [](double time, std::uint64_t sent, std::uint64_t fp32, std::uint64_t payload) {
    return line_of("peer", kPeer, time,
                   {.event = EventKind::kBytes, .sent = sent, .received = 7, .fp32 = fp32, .payload = payload});
  };
  return bytes(101, 1000, 4000, 1000) + bytes(102, 500, 400, 100) + bytes(103, 99, 1, 1).substr(0, 40);
}

TEST(DemoEventsTest, AreReadFromAllFilesOfTheFolder) {
  const ScratchFolder folder;
  folder.write("launch.jsonl", launch_text());
  const std::string peer = peer_text();
  const std::size_t half = peer.find('\n') + 1;
  folder.write("peer-0.jsonl.0001", peer.substr(0, half));
  folder.write("peer-0.jsonl", peer.substr(half));
  folder.write("notes.txt", peer);
  const auto events = read_demo_events(folder.path());
  ASSERT_TRUE(events.ok()) << events.error().message;
  EXPECT_EQ(events->tokens(), 1024u) << "a commit written twice counts once";
  ASSERT_EQ(events->commits.size(), 2u);
  EXPECT_LT(events->commits[0].at, events->commits[1].at);
  EXPECT_EQ(events->commits[1].targets, 512u);
  EXPECT_THAT(events->step_losses, ElementsAre(DoubleNear(5.25, 1e-12)));
  EXPECT_EQ(events->run.loss().validation, std::optional<double>(4.5));
  EXPECT_TRUE(events->run.loss().validated_at_end);
  EXPECT_EQ(events->run.bytes().sent, 1570u) << "a torn last line is left out";
  EXPECT_EQ(events->run.bytes().fp32, 4400u);
  EXPECT_EQ(events->run.bytes().payload, 1100u);
  EXPECT_EQ(events->lost.at("0000000000000002.0000000000000001"), 1u);
  EXPECT_EQ(events->faults, 1u) << "who left is none";
}

TEST(DemoEventsTest, CommitsOfAPeerAreNotTheTrainers) {
  const ScratchFolder folder;
  folder.write("peer-0.jsonl", line_of("peer", kPeer, 1, commit_event({0xaa, 1}, {{kPeer, 1}}, 5.5, 512)));
  const auto events = read_demo_events(folder.path());
  ASSERT_TRUE(events.ok());
  EXPECT_TRUE(events->commits.empty());
}

TEST(DemoEventsTest, AFolderWithoutEventFilesIsAnError) {
  const ScratchFolder folder;
  const auto events = read_demo_events(folder.path());
  ASSERT_FALSE(events.ok());
  EXPECT_EQ(events.code(), ErrorCode::kMissing);
}

}  // namespace
}  // namespace shoal
