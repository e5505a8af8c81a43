// Figures as rows, and rates.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "metrics/launch_figures.h"
#include "metrics/peer_figures.h"
#include "metrics/recent_rate.h"

namespace shoal {
namespace {

constexpr TimePoint kStart = TimePoint{} + 100s;

TEST(FigureTest, ARowReadsItsMember) {
  PeerFigures figures;
  for (const PeerFigure& row : peer_figures()) EXPECT_FALSE(row.is_told(figures));
  figures.rate = 2.5;
  figures.memory_bytes = 3;
  figures.device = "cpu";
  std::size_t told = 0;
  for (const PeerFigure& row : peer_figures()) {
    told += row.is_told(figures);
    const std::string key = row.places.inspect != nullptr ? row.places.inspect : "";
    if (key == "rate") {
      EXPECT_EQ(row.of(figures), FigureValue(2.5));
    }
  }
  EXPECT_EQ(told, 3u);
}

template <class Snapshot>
void expect_own_names(std::span<const Figure<Snapshot>> rows) {
  std::set<std::string> names;
  for (const Figure<Snapshot>& row : rows) {
    const FigurePlaces& at = row.places;
    for (const auto& [place, name] : {std::pair("record ", at.record.key), std::pair("inspect ", at.inspect),
                                      std::pair("summary ", at.summary), std::pair("page ", at.page)})
      EXPECT_TRUE(name == nullptr || names.insert(std::string(place) + name).second) << place << name;
    EXPECT_EQ(at.record.key == nullptr, at.inspect == nullptr) << "`inspect` shows what a record has";
  }
}

TEST(FigureTest, NoPlaceHasTwoFiguresOfOneName) {
  expect_own_names(peer_figures());
  expect_own_names(launch_figures());
}

// A run that stands still has a rate of 0; one that has just begun has none.
TEST(FigureTest, AnOptionalNumberIsToldToBeZero) {
  LaunchFigures figures;
  for (const LaunchFigure& row : launch_figures()) EXPECT_FALSE(row.is_told(figures));
  figures.rate = 0;
  figures.loss = std::nan("");
  std::size_t told = 0;
  for (const LaunchFigure& row : launch_figures()) {
    if (!row.is_told(figures)) continue;
    ++told;
    EXPECT_STREQ(row.places.inspect, "rate");
    EXPECT_EQ(row.of(figures), FigureValue(0.0));
  }
  EXPECT_EQ(told, 1u);
}

TEST(RecentRateTest, IsThatOfTheWindow) {
  RecentRate rate(10s);
  EXPECT_EQ(rate.per_second(), 0);
  for (int second = 0; second <= 60; ++second) rate.note(second < 30 ? 0 : (second - 30) * 5.0, kStart + second * 1s);
  EXPECT_NEAR(rate.per_second(), 5, 1e-9);
  EXPECT_EQ(rate.time_for(50), std::optional<Duration>(10s));
}

// A rate of the last two seconds alone was 0 between any two microbatches that are further apart.
TEST(RecentRateTest, WhatComesInPiecesFurtherApartThanTheWindowIsNotZero) {
  RecentRate rate(10s);
  for (int second = 0; second <= 100; ++second) {
    rate.note(second / 25 * 1000.0, kStart + second * 1s);  // 1000 every 25 s
    EXPECT_EQ(rate.per_second() > 0, second >= 25) << second;
  }
  EXPECT_NEAR(rate.per_second(), 40, 1e-9) << "of the last two pieces";
  rate.note(4000, kStart + 100s + RecentRate::kWindowsMax * 10s + 1s);
  EXPECT_EQ(rate.per_second(), 0) << "it stands still";
  EXPECT_EQ(rate.time_for(50), std::nullopt);
}

TEST(RecentRateTest, ACountThatBeginsAnewIsANewOne) {
  RecentRate rate(10s);
  rate.note(1000, kStart);
  rate.note(2000, kStart + 1s);
  rate.note(10, kStart + 2s);
  EXPECT_EQ(rate.per_second(), 0);
  rate.note(20, kStart + 3s);
  EXPECT_NEAR(rate.per_second(), 10, 1e-9);
}

}  // namespace
}  // namespace shoal
