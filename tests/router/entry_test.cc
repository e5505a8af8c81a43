#include "router/entry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace shoal {
namespace {

using S = EntryState;

bool may_reach(S from, S to) {
  std::vector<S> reached = {from};
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (auto next = S::kArriving; next <= S::kGone; next = static_cast<S>(static_cast<int>(next) + 1))
      if (may_follow(reached[i], next) && std::find(reached.begin(), reached.end(), next) == reached.end())
        reached.push_back(next);
  return std::find(reached.begin() + 1, reached.end(), to) != reached.end();
}

TEST(EntryTest, IsGoneFromEveryStateAtLastAndNeverComesBack) {
  for (auto state = S::kArriving; state < S::kGone; state = static_cast<S>(static_cast<int>(state) + 1)) {
    EXPECT_TRUE(may_reach(state, S::kGone)) << name_of(state);
    EXPECT_FALSE(may_follow(S::kGone, state)) << name_of(state);
  }
}

TEST(EntryTest, IsNeverUndoneOnceItIsFinal) {
  for (const S state : {S::kCommitted, S::kDropped, S::kMerged}) EXPECT_FALSE(may_reach(state, S::kUndoing));
  EXPECT_TRUE(may_follow(S::kCounted, S::kUndoing));
}

TEST(EntryTest, ThatIsUndoneIsNeitherCommittedNorCountedAgain) {
  for (const S state : {S::kEnding, S::kUndoing})
    for (const S after : {S::kCounted, S::kCommitted}) EXPECT_FALSE(may_reach(state, after)) << name_of(state);
}

}  // namespace
}  // namespace shoal
