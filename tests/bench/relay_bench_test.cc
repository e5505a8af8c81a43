#include "bench/relay_bench.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(RelayBenchTest, JainsIndexIsOneWhereAllHaveTheSame) {
  EXPECT_DOUBLE_EQ(jain_index({3, 3, 3, 3}), 1);
  EXPECT_DOUBLE_EQ(jain_index({1, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(jain_index({}), 0);
}

TEST(RelayBenchTest, ARateThatIsNoneIsRefused) {
  EXPECT_EQ(run_relay_bench({.rate = "fast"}).code(), ErrorCode::kInput);
}

}  // namespace
}  // namespace shoal
