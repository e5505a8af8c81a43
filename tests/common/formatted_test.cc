#include "common/formatted.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(FormattedTest, TextOfAnyLengthIsWhole) {
  const std::string word(5000, 'x');
  EXPECT_EQ(formatted("%s|%5.2f|%d %%", word.c_str(), 1.005, -3), word + "| 1.00|-3 %");
  EXPECT_EQ(formatted("%s", ""), "");
}

}  // namespace
}  // namespace shoal
