#include "demo/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

constexpr const char* kTrainer =
    R"({"time":101.5,"event":"commit","role":"trainer","microbatch":"00000000000000aa:1","targets":512,"loss":5.5})"
    "\n"
    R"({"time":100.5,"event":"commit","role":"trainer","microbatch":"00000000000000aa:0","targets":512,"loss":5.5})"
    "\n"
    R"({"time":102.5,"event":"commit","role":"trainer","microbatch":"00000000000000aa:0","targets":512,"loss":5.5})"
    "\n"
    R"({"time":103,"event":"train","role":"trainer","step":1,"loss":5.25,"targets":1024})"
    "\n"
    R"({"time":103,"event":"lost","role":"trainer","microbatch":"00000000000000aa:0","stage":2,"entry":"s.1#4","cause":"x"})"
    "\n"
    R"({"time":103.5,"event":"session_over","role":"trainer","about":"s.1","stage":2,"cause":"no sign of life"})"
    "\n"
    R"({"time":103.6,"event":"session_over","role":"trainer","about":"s.2","stage":2,"cause":"left"})"
    "\n"
    R"({"time":104,"event":"bytes","role":"trainer","sent":70,"received":5})"
    "\n"
    R"({"time":105,"event":"validation","role":"trainer","loss":4.5,"targets":100})"
    "\n";
constexpr const char* kPeer =
    R"({"time":101,"event":"bytes","role":"peer","sent":1000,"received":7,"fp32":4000,"payload":1000})"
    "\n"
    R"({"time":102,"event":"bytes","role":"peer","sent":500,"received":7,"fp32":400,"payload":100})"
    "\n"
    R"({"time":103,"event":"bytes","role":"peer","sent":99)";

TEST(DemoEventsTest, SumWhatTheProcessesWrote) {
  DemoEvents events;
  read_demo_text(kTrainer, events);
  read_demo_text(kPeer, events);
  EXPECT_EQ(events.tokens(), 1024u) << "a commit written twice counts once";
  ASSERT_EQ(events.commits.size(), 2u);
  EXPECT_LT(events.commits[0].at, events.commits[1].at);
  EXPECT_THAT(events.step_losses, ElementsAre(DoubleNear(5.25, 1e-12)));
  EXPECT_EQ(events.validation_loss, std::optional<double>(4.5));
  EXPECT_EQ(events.sent_bytes, 1570u) << "a torn last line is left out";
  EXPECT_EQ(events.fp32_bytes, 4400u);
  EXPECT_EQ(events.payload_bytes, 1100u);
  EXPECT_EQ(events.lost.at("s.1"), 1u);
  EXPECT_EQ(events.faults, 1u) << "who left is none";
}

TEST(DemoEventsTest, CommitsOfAPeerAreNotTheTrainers) {
  DemoEvents events;
  read_demo_text(R"({"time":1,"event":"commit","role":"peer","microbatch":"a:1","targets":512})"
                 "\n",
                 events);
  EXPECT_TRUE(events.commits.empty());
}

TEST(DemoEventsTest, AreReadFromAllFilesOfTheFolder) {
  const ScratchFolder folder;
  folder.write("launch.jsonl", kTrainer);
  const std::string peer = kPeer;
  const std::size_t half = peer.find('\n', peer.size() / 2) + 1;
  folder.write("peer-0.jsonl.0001", peer.substr(0, half));
  folder.write("peer-0.jsonl", peer.substr(half));
  folder.write("notes.txt", kPeer);
  const auto events = read_demo_events(folder.path());
  ASSERT_TRUE(events.ok()) << events.error().message;
  EXPECT_EQ(events->sent_bytes, 1570u);
}

TEST(DemoEventsTest, AFolderWithoutEventFilesIsAnError) {
  const ScratchFolder folder;
  const auto events = read_demo_events(folder.path());
  ASSERT_FALSE(events.ok());
  EXPECT_EQ(events.code(), ErrorCode::kMissing);
}

}  // namespace
}  // namespace shoal
