#include "common/os/descriptors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

namespace shoal {
namespace {

// The soft limit of this process, as it was when the test is over. The hard one cannot be taken back, so it is left.
class DescriptorsTest : public testing::Test {
 protected:
  DescriptorsTest() { EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0); }
  ~DescriptorsTest() override { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  rlimit before_ = {};
};

TEST_F(DescriptorsTest, TheSoftLimitIsRaisedToTheHardOne) {
  const rlimit low = {before_.rlim_max < 512 ? before_.rlim_max / 2 : 256, before_.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  ASSERT_EQ(descriptors_max(), low.rlim_cur);
  const Status raised = raise_descriptors_max();
  EXPECT_EQ(descriptors_max(), before_.rlim_max);
  EXPECT_EQ(raised.ok(), before_.rlim_max >= kDescriptorsWanted) << "what is too little is said";
  if (!raised.ok()) {
    EXPECT_NE(raised.error().message.find("HINT"), std::string::npos);
  }
}

}  // namespace
}  // namespace shoal
