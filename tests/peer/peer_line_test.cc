#include "runtime/peer/peer_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "common/status_line.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kPiped = kLineColumns - kTimeColumns, kTerminal = kLineColumns - 1;
constexpr TimePoint kStart = TimePoint{} + 100s;

PeerFigures serving() {
  return {.phase = PeerPhase::kServing,
          .reason = {},
          .stage = 2,
          .targets = 512,
          .device = "cpu",
          .memory_used = std::uint64_t{1288} << 20,
          .memory_needed = std::uint64_t{1945} << 20};
}

TEST(PeerLineTest, SaysVersionAndAgeOfTheNewestCheckpointHere) {
  PeerFigures figures = serving();
  figures.disk_version = 12;
  figures.disk_age = 45s;
  EXPECT_THAT(PeerLine().text(figures, kStart, kTerminal), HasSubstr("disk v12 0:45"));
}

TEST(PeerLineTest, SaysWhatThisMachineGivesAndWhatComesOfIt) {
  PeerLine line;
  PeerFigures figures = serving();
  (void)line.text(figures, kStart, kPiped);
  figures.accepted = 100;
  figures.run_targets = 200 * 512;
  figures.sent_bytes = 11'000'000;
  figures.received_bytes = 12'000'000;
  EXPECT_EQ(line.text(figures, kStart + 10s, kTerminal),
            "serving 2 50% took 100 5.12k tok/s cpu 1.3/1.9G up 1.1M/11M down 1.2M/12M");
  EXPECT_EQ(line.text(figures, kStart + 10s, kPiped),
            "serving 2 50% took 100 5.12k tok/s 1.3/1.9G up 1.1M/11M down 1.2M/12M");
}

TEST(PeerLineTest, TheRateIsNeverZeroWhileWorkIsAccepted) {
  PeerLine line;
  PeerFigures figures = serving();
  for (int second = 0; second <= 120; second += 5) {
    figures.accepted = static_cast<std::uint64_t>(second / 30);  // one microbatch in 30 s
    const std::string text = line.text(figures, kStart + second * 1s, kPiped);
    if (figures.accepted == 0) continue;
    EXPECT_THAT(text, Not(HasSubstr(" 0 tok/s"))) << second;
  }
}

TEST(PeerLineTest, WhileAStateComesItSaysHowMuchOfIt) {
  PeerLine line;
  PeerFigures figures = serving();
  figures.phase = PeerPhase::kFetching;
  figures.fetch_total = 1'100'000'000;
  (void)line.text(figures, kStart, kPiped);
  figures.fetched_bytes = 312'000'000;
  const std::string text = line.text(figures, kStart + 4s, kPiped);
  EXPECT_EQ(text, "fetching 2  312M/1.10G  28%  78.0MB/s  0:11 left");
}

TEST(PeerLineTest, ElseItSaysTheStateAndTheReason) {
  PeerLine line;
  PeerFigures figures{.phase = PeerPhase::kConnecting, .reason = "no link to launch: connection refused"};
  EXPECT_EQ(line.text(figures, kStart, kPiped), "connecting  (no link to launch: connection refused)");
  figures = serving();
  figures.reason = "waiting: stage 3 has no peer";
  EXPECT_THAT(line.text(figures, kStart, kPiped), HasSubstr("serving 2 (waiting: stage 3 has no peer)"));
}

// The addresses are as long as IPv4's can be.
TEST(PeerLineTest, AReasonIsSaidWholeAlsoWhereTheLineIsPiped) {
  PeerLine line;
  PeerFigures figures = serving();
  const std::string address = "255.255.255.255:65535";
  figures.reason = "no link to launch: nobody listens at " + address;
  EXPECT_EQ(line.text(figures, kStart, kPiped), "serving 2 (no link to launch: nobody listens at " + address + ")");
  figures = {.phase = PeerPhase::kConnecting, .reason = figures.reason};
  EXPECT_EQ(line.text(figures, kStart, kPiped), "connecting (no link to launch: nobody listens at " + address + ")");
  figures = {.phase = PeerPhase::kJoining, .reason = "cannot be dialled: nobody listens at " + address};
  EXPECT_EQ(line.text(figures, kStart, kPiped), "joining  (cannot be dialled: nobody listens at " + address + ")");
  figures.reason += "; nobody listens at " + address;
  EXPECT_THAT(line.text(figures, kStart, kPiped), ::testing::EndsWith("...")) << "what is cut says so";
}

TEST(PeerLineTest, FitsItsColumnsAtExtremeFigures) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const PeerPhase phase : {PeerPhase::kFetching, PeerPhase::kServing, PeerPhase::kLeaving, PeerPhase::kJoining}) {
    for (const char* reason : {"", "waiting: this machine reaches no peer of stage 65535",
                               "no link to launch: a reason that has no end and goes on and on and on and on"}) {
      for (const std::uint64_t first : {std::uint64_t{0}, kMost}) {
        PeerLine line;
        PeerFigures f{.phase = phase, .reason = reason, .stage = std::uint16_t{65535}, .accepted = first};
        f.targets = kMost;
        f.device = "cuda:15";
        f.memory_used = f.memory_needed = f.fetch_total = kMost;
        (void)line.text(f, kStart, kPiped);
        f.accepted = f.run_targets = f.sent_bytes = f.received_bytes = f.fetched_bytes = kMost;
        EXPECT_LE(line.text(f, kStart + 1ms, kPiped).size(), kPiped);
        EXPECT_LE(line.text(f, kStart + 2ms, kTerminal).size(), kTerminal);
      }
    }
  }
}

// Every look is a line of a log.
TEST(PeerLineTest, ALogHasFewLinesOfAPeerThatWaits) {
  PeerLine line;
  PeerFigures figures{.phase = PeerPhase::kFetching, .reason = "nobody serves the stage", .stage = std::uint16_t{1}};
  int lines = 0;
  for (int second = 0; second < 3600; second += 5) lines += line.due(figures, kStart + std::chrono::seconds(second));
  EXPECT_EQ(lines, 10) << "the first, and when the time has doubled";
  for (int second = 3600; second < 3700; second += 5) {
    figures.fetched_bytes += 1 << 20;
    lines += line.due(figures, kStart + std::chrono::seconds(second));
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
