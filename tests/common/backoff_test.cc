// Pauses that double.
#include "common/backoff.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(BackoffTest, DoublesFromTheFirstToTheMostAndBeginsAgain) {
  Backoff backoff{100ms, 500ms};
  EXPECT_FALSE(backoff.begun());
  for (const Duration expected : {100ms, 200ms, 400ms, 500ms, 500ms}) EXPECT_EQ(backoff.next(), expected);
  EXPECT_TRUE(backoff.begun());
  backoff.reset();
  EXPECT_FALSE(backoff.begun());
  EXPECT_EQ(backoff.next(300ms), 300ms);
  EXPECT_EQ(backoff.next(9s), 500ms);
  EXPECT_EQ(backoff.ease(), 250ms);
  EXPECT_EQ(backoff.ease(), 125ms);
  EXPECT_EQ(backoff.ease(), 100ms);
}

}  // namespace
}  // namespace shoal
