// Lines for people: what they say, and that they fit whatever the figures are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "common/status_line.h"
#include "events/headway.h"
#include "events/line_parts.h"
#include "events/train_line.h"

namespace shoal {
namespace {

constexpr std::size_t kPiped = kLineColumns - kTimeColumns, kTerminal = kLineColumns - 1;
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr double kHuge = std::numeric_limits<double>::max(), kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInfinite = std::numeric_limits<double>::infinity();
constexpr TimePoint kStart = TimePoint{} + 100s;

TEST(LinePartsTest, NumbersHaveABoundedWidth) {
  EXPECT_EQ(short_number(0.0), "0");
  EXPECT_EQ(short_number(999.6), "1.00k");
  EXPECT_EQ(short_number(123456.0), "123k");
  EXPECT_EQ(short_number(kMost), "18.4E");
  for (const double value : {1e18, 9.995e20, 1e21, kHuge, -kHuge, kNan, kInfinite, 0.001})
    EXPECT_LE(short_number(value).size(), 9u) << value;
  EXPECT_EQ(brief_number(1.23e6), "1.2M");
  EXPECT_EQ(brief_number(34.5e6), "34M");
  EXPECT_EQ(brief_number(450e3), "450k");
  EXPECT_EQ(brief_number(1.5), "1.5");
  EXPECT_EQ(loss_text(2.23684), "2.237");
  for (const double loss : {999.9999, 1e300, -1e300, kNan, kInfinite}) EXPECT_LE(loss_text(loss).size(), 9u) << loss;
}

TEST(LinePartsTest, SharesAndTimesSayNoMoreThanTheyAre) {
  EXPECT_EQ(percent_text(999, 1000), "99%") << "100 % only when it is";
  EXPECT_EQ(percent_text(1000, 1000), "100%");
  EXPECT_EQ(percent_text(kMost, kMost), "100%");
  EXPECT_EQ(percent_text(kMost - 1, kMost), "99%") << "the same number as a double";
  EXPECT_EQ(percent_text(5, 0), "");
  EXPECT_EQ(span_text(11500ms), "0:12");
  EXPECT_EQ(span_text(3723s), "1:02:03");
  EXPECT_EQ(span_text(std::chrono::hours(24 * 12)), "12 d");
  EXPECT_LE(span_text(std::chrono::hours(24 * 36500)).size(), 8u);
  EXPECT_EQ(clock_text(75s), "0:01:15");
}

TEST(LinePartsTest, WhatDoesNotFitIsClosedUpThenDroppedByRankThenCut) {
  const std::vector<LinePart> parts = {{"aaaa", 0}, {"", 0}, {"bbb", 2}, {"cc", 1}};
  EXPECT_EQ(fitted(parts, 13), "aaaa  bbb  cc");
  EXPECT_EQ(fitted(parts, 12), "aaaa bbb cc");
  EXPECT_EQ(fitted(parts, 10), "aaaa cc");
  EXPECT_EQ(fitted(parts, 6), "aaaa");
  EXPECT_EQ(fitted(parts, 3), "aaa");
  EXPECT_EQ(fitted({}, 3), "");
}

TrainLine some_line() {
  return {.step = 390,
          .steps = 404,
          .loss = 2.23684,
          .lr = 6e-4,
          .tokens_per_s = 25313,
          .tokens = 1'660'000,
          .end_tokens = 1'720'000,
          .left = 12s,
          .peers = {2, 2, 1, 2},
          .faults = 0,
          .elapsed = 73s};
}

TEST(TrainLineTest, SaysHowFarHowLongHowWellHowFastAndWithWhom) {
  TrainLine line = some_line();
  EXPECT_EQ(text_of(line, kPiped), "390/404 96% 0:12 left loss 2.237 lr 6.0e-4 25.3k tok/s peers 2 2 1 2");
  EXPECT_EQ(text_of(line, kTerminal), "390/404  96%  0:12 left  loss 2.237  lr 6.0e-4  25.3k tok/s  peers 2 2 1 2");
  line.faults = 1;
  EXPECT_EQ(text_of(line, kPiped), "390/404 96% 0:12 left loss 2.237 25.3k tok/s peers 2 2 1 2 faults 1");
}

TEST(TrainLineTest, TheLastEstimateOfTheValidationLossStandsBesideTheLoss) {
  TrainLine line = some_line();
  line.validation = 2.30149;
  EXPECT_EQ(text_of(line, kPiped), "390/404 96% 0:12 left loss 2.237 val 2.301 25.3k tok/s peers 2 2 1 2");
  line.parked = 73s;
  EXPECT_EQ(text_of(line, kTerminal), "390/404  96%  parked 1:13  loss 2.237  val 2.301  lr 6.0e-4");
}

TEST(TrainLineTest, WithoutAKnownEndItSaysWhatIsDone) {
  TrainLine line = some_line();
  line.steps = line.end_tokens = 0;
  line.left.reset();
  line.peers.clear();
  EXPECT_EQ(text_of(line, kPiped), "step 390  1.66M tok  0:01:13  loss 2.237  lr 6.0e-4  25.3k tok/s");
}

TEST(TrainLineTest, WhileItStandsStillNoRateIsTold) {
  TrainLine line = some_line();
  line.parked = 73s;
  EXPECT_EQ(text_of(line, kTerminal), "390/404  96%  parked 1:13  loss 2.237  lr 6.0e-4");
  line.end_tokens = 0;
  line.faults = 2;
  EXPECT_EQ(text_of(line, kPiped), "390/404  1.66M tok  parked 1:13  loss 2.237  lr 6.0e-4  faults 2");
}

TEST(TrainLineTest, FitsItsColumnsAtExtremeFigures) {
  for (const double number : {0.0, 999.9999, kHuge, kNan, -kInfinite}) {
    for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{999'999}, kMost}) {
      for (const std::size_t stages : {0u, 1u, 4u, 8u, 1024u}) {
        TrainLine line;
        line.step = line.steps = line.tokens = count;
        line.loss = line.lr = line.tokens_per_s = number;
        line.validation = number;
        line.end_tokens = kMost;
        line.left = std::chrono::hours(1'000'000);
        line.peers.assign(stages, std::numeric_limits<std::uint32_t>::max());
        line.faults = count;
        for (const std::size_t columns : {kPiped, kTerminal, std::size_t{20}}) {
          const std::string text = text_of(line, columns);
          EXPECT_LE(text.size(), columns) << text;
          EXPECT_FALSE(text.empty());
        }
      }
    }
  }
}

TEST(TrainLineTest, ManyStagesAreSummedUp) {
  TrainLine line = some_line();
  line.peers.assign(64, 12);
  line.peers[5] = 1;
  EXPECT_THAT(text_of(line, kPiped), testing::HasSubstr("peers 1-12 in 64"));
}

TEST(HeadwayTest, SaysHowMuchHowFastAndHowLongYet) {
  EXPECT_EQ(text_of({.what = "validating", .done = 64, .total = 128}, 6.4, 10s, kPiped),
            "validating  64/128  50%  6.40/s  0:10 left");
  EXPECT_EQ(
      text_of({.what = "fetching 2", .done = 312'000'000, .total = 1'100'000'000, .bytes = true}, 72e6, 11s, kPiped),
      "fetching 2  312M/1.10G  28%  72.0MB/s  0:11 left");
  const Headway most{.what = "fetching the state of stage 65535", .done = kMost - 1, .total = kMost, .bytes = true};
  EXPECT_LE(text_of(most, kHuge, std::chrono::hours(1'000'000), kPiped).size(), kPiped);
}

TEST(HeadwayTest, HasALineASecondAndNoneForWhatTakesLess) {
  HeadwayMeter meter;
  EXPECT_FALSE(meter.line({.what = "a", .done = 0, .total = 9}, kStart, kPiped));
  EXPECT_FALSE(meter.line({.what = "a", .done = 1, .total = 9}, kStart + 999ms, kPiped));
  EXPECT_EQ(meter.line({.what = "a", .done = 3, .total = 9}, kStart + 1500ms, kPiped),
            std::optional<std::string>("a  3/9  33%  2/s  0:03 left"));
  EXPECT_FALSE(meter.line({.what = "a", .done = 4, .total = 9}, kStart + 2s, kPiped));
  EXPECT_FALSE(meter.line({.what = "b", .done = 4, .total = 9}, kStart + 9s, kPiped)) << "another thing begins";
}

TEST(HeadwayTest, WhatHadALineHasOneAtItsEndToo) {
  HeadwayMeter meter;
  EXPECT_FALSE(meter.line({.what = "a", .done = 0, .total = 9}, kStart, kPiped));
  ASSERT_TRUE(meter.line({.what = "a", .done = 6, .total = 9}, kStart + 2s, kPiped));
  EXPECT_EQ(meter.line({.what = "a", .done = 9, .total = 9}, kStart + 2100ms, kPiped),
            std::optional<std::string>("a  9/9  100%  4.29/s"));
  EXPECT_FALSE(meter.line({.what = "a", .done = 9, .total = 9}, kStart + 2200ms, kPiped)) << "it was told";
  EXPECT_FALSE(meter.line({.what = "b", .done = 0, .total = 9}, kStart + 3s, kPiped));
  EXPECT_FALSE(meter.line({.what = "b", .done = 9, .total = 9}, kStart + 3500ms, kPiped)) << "it had no line";
}

}  // namespace
}  // namespace shoal
