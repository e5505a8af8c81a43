#include "common/sparse_ticks.h"

#include <gtest/gtest.h>

#include <vector>

namespace shoal {
namespace {

std::vector<int> ticks_of(SparseTicks& ticks, int seconds) {
  std::vector<int> at;
  for (int second = 0; second < seconds; ++second)
    if (ticks.due(std::chrono::seconds(second))) at.push_back(second);
  return at;
}

TEST(SparseTicksTest, AnHourIsNineLines) {
  SparseTicks ticks;
  EXPECT_EQ(ticks_of(ticks, 3600), (std::vector<int>{10, 20, 40, 80, 160, 320, 640, 1280, 2560}));
}

TEST(SparseTicksTest, WhatBeginsAnewIsSaidAsAtFirst) {
  SparseTicks ticks;
  ticks_of(ticks, 300);
  EXPECT_EQ(ticks_of(ticks, 25), (std::vector<int>{10, 20}));
}

TEST(SparseTicksTest, ALateLookIsOneLine) {
  SparseTicks ticks;
  EXPECT_TRUE(ticks.due(1000s));
  EXPECT_FALSE(ticks.due(1001s));
  EXPECT_TRUE(ticks.due(1280s));
}

}  // namespace
}  // namespace shoal
