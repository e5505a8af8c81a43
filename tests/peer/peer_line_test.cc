#include "runtime/peer/peer_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "common/status_line.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kPiped = kLineColumns - kTimeColumns, kTerminal = kLineColumns - 1;
constexpr TimePoint kStart = TimePoint{} + 100s;

PeerReport serving() {
  PeerReport report{.phase = PeerPhase::kServing, .stage = StageId(2)};
  report.figures = {
      .device = "cpu", .memory_bytes = std::uint64_t{1945} << 20, .memory_used = std::uint64_t{1288} << 20};
  return report;
}

TEST(PeerLineTest, SaysVersionAndAgeOfTheNewestCheckpointHere) {
  PeerReport report = serving();
  report.on_disk = {Version(12), 45};
  EXPECT_THAT(PeerLine().text(report, kStart, kTerminal), HasSubstr("disk v12 0:45"));
}

TEST(PeerLineTest, SaysWhatThisMachineGivesAndWhatComesOfIt) {
  PeerLine line;
  PeerReport report = serving();
  (void)line.text(report, kStart, kPiped);
  report.figures.accepted = 100;
  report.figures.rate = 100 * 512 / 10.0;
  report.run.run_targets = 200 * 512;
  report.figures.sent_bytes = 11'000'000;
  report.figures.received_bytes = 12'000'000;
  EXPECT_EQ(line.text(report, kStart + 10s, kTerminal),
            "serving 2 50% took 100 5.12k tok/s cpu 1.3/1.9G up 1.1M/11M down 1.2M/12M");
  EXPECT_EQ(line.text(report, kStart + 10s, kPiped),
            "serving 2 50% took 100 5.12k tok/s 1.3/1.9G up 1.1M/11M down 1.2M/12M");
}

TEST(PeerLineTest, WhileAStateComesItSaysHowMuchOfIt) {
  PeerLine line;
  PeerReport report = serving();
  report.phase = PeerPhase::kFetching;
  report.fetch_total = 1'100'000'000;
  (void)line.text(report, kStart, kPiped);
  report.fetched_bytes = 312'000'000;
  const std::string text = line.text(report, kStart + 4s, kPiped);
  EXPECT_EQ(text, "fetching 2  312M/1.10G  28%  78.0MB/s  0:11 left");
}

TEST(PeerLineTest, ElseItSaysTheStateAndTheReason) {
  PeerLine line;
  PeerReport report{.phase = PeerPhase::kConnecting, .reason = "no link to launch: connection refused"};
  EXPECT_EQ(line.text(report, kStart, kPiped), "connecting  (no link to launch: connection refused)");
  report = serving();
  report.reason = "waiting: stage 3 has no peer";
  EXPECT_THAT(line.text(report, kStart, kPiped), HasSubstr("serving 2 (waiting: stage 3 has no peer)"));
}

// The addresses are as long as IPv4's can be.
TEST(PeerLineTest, AReasonIsSaidWholeAlsoWhereTheLineIsPiped) {
  PeerLine line;
  PeerReport report = serving();
  const std::string address = "255.255.255.255:65535";
  report.reason = "no link to launch: nobody listens at " + address;
  EXPECT_EQ(line.text(report, kStart, kPiped), "serving 2 (no link to launch: nobody listens at " + address + ")");
  report = {.phase = PeerPhase::kConnecting, .reason = report.reason};
  EXPECT_EQ(line.text(report, kStart, kPiped), "connecting (no link to launch: nobody listens at " + address + ")");
  report = {.phase = PeerPhase::kJoining, .reason = "cannot be dialled: nobody listens at " + address};
  EXPECT_EQ(line.text(report, kStart, kPiped), "joining  (cannot be dialled: nobody listens at " + address + ")");
  report.reason += "; nobody listens at " + address;
  EXPECT_THAT(line.text(report, kStart, kPiped), ::testing::EndsWith("...")) << "what is cut says so";
}

TEST(PeerLineTest, FitsItsColumnsAtExtremeFigures) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const PeerPhase phase : {PeerPhase::kFetching, PeerPhase::kServing, PeerPhase::kLeaving, PeerPhase::kJoining}) {
    for (const char* reason : {"", "waiting: this machine reaches no peer of stage 65535",
                               "no link to launch: a reason that has no end and goes on and on and on and on"}) {
      for (const std::uint64_t first : {std::uint64_t{0}, kMost}) {
        PeerLine line;
        PeerReport r{.phase = phase, .reason = reason, .stage = StageId(65535)};
        PeerFigures& f = r.figures;
        f.accepted = first;
        f.device = "cuda:15";
        f.memory_used = f.memory_bytes = r.fetch_total = kMost;
        (void)line.text(r, kStart, kPiped);
        f.rate = static_cast<double>(kMost) * static_cast<double>(kMost);
        f.accepted = r.run.run_targets = f.sent_bytes = f.received_bytes = r.fetched_bytes = kMost;
        EXPECT_LE(line.text(r, kStart + 1ms, kPiped).size(), kPiped);
        EXPECT_LE(line.text(r, kStart + 2ms, kTerminal).size(), kTerminal);
      }
    }
  }
}

// Every look is a line of a log.
TEST(PeerLineTest, ALogHasFewLinesOfAPeerThatWaits) {
  PeerLine line;
  PeerReport report{.phase = PeerPhase::kFetching, .reason = "nobody serves the stage", .stage = StageId(1)};
  int lines = 0;
  for (int second = 0; second < 3600; second += 5) lines += line.due(report, kStart + std::chrono::seconds(second));
  EXPECT_EQ(lines, 10) << "the first, and when the time has doubled";
  for (int second = 3600; second < 3700; second += 5) {
    report.fetched_bytes += 1 << 20;
    lines += line.due(report, kStart + std::chrono::seconds(second));
  }
  EXPECT_EQ(lines, 30) << "what moves is told each time";
}

TEST(MemoryTextTest, SetsThePeakBesideTheEstimate) {
  EXPECT_EQ(memory_text(std::uint64_t{1659} << 20, std::uint64_t{1751} << 20),
            "memory: at most 1.62 GiB of this process, 1.71 GiB were estimated");
  EXPECT_EQ(memory_text(std::uint64_t{1659} << 20, 0), "memory: at most 1.62 GiB of this process");
}

}  // namespace
}  // namespace shoal
