// Processes that are started with few descriptors ask for as many as they are allowed.
#include <sys/resource.h>

#include <sstream>

#include "tests/live/processes.h"

namespace shoal {
namespace {

// The soft and the hard limit, as the kernel tells them.
std::string open_files_of(pid_t process) {
  std::istringstream lines(ScratchFolder::read("/proc/" + std::to_string(process) + "/limits"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("Max open files")) return line;
  return "";
}

TEST(LiveDescriptorsTest, LaunchAndJoinRaiseTheirLimit) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low = {256, before.rlim_max};
  ASSERT_LT(low.rlim_cur, low.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  Processes swarm;
  swarm.launch(swarm.write_run({}));
  swarm.join("a");
  EXPECT_TRUE(swarm.wait_for_event("a", {"\"event\":\"serving\""})) << swarm.errors("a");
  for (const std::string name : {"launch", "a"}) {
    std::istringstream words(open_files_of(swarm.process(name).pid()));
    std::string skipped, soft, hard;
    words >> skipped >> skipped >> skipped >> soft >> hard;
    EXPECT_FALSE(soft.empty()) << name;
    EXPECT_EQ(soft, hard) << name;
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace shoal
