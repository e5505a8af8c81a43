#include "runtime/peer/traffic.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(TrafficBookTest, CountsOverSessionsAndWritesEveryByteOnce) {
  TrafficBook book;
  EXPECT_EQ(book.take_unwritten({.sent = 10, .received = 4}), (Traffic{.sent = 10, .received = 4}));
  EXPECT_EQ(book.take_unwritten({.sent = 10, .received = 4}), Traffic{});
  const Traffic first{.sent = 15, .received = 4, .fp32 = 8, .payload = 2};
  book.end_session(first);
  EXPECT_EQ(book.total({}), first);
  EXPECT_EQ(book.take_unwritten({.sent = 1}), (Traffic{.sent = 6, .fp32 = 8, .payload = 2}));
  EXPECT_EQ(book.total({.sent = 1}), (Traffic{.sent = 16, .received = 4, .fp32 = 8, .payload = 2}));
}

}  // namespace
}  // namespace shoal
