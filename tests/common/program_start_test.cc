#include "common/os/program_start.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace shoal {
namespace {

// Exit code of a child that runs `body`: what it does to itself stays there.
int in_a_child(int (*body)()) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(ProgramStartTest, ClosedDescriptorsAreTakenByNothingAndStillFail) {
  EXPECT_EQ(in_a_child([] {
              for (const int fd : {0, 1, 2}) close(fd);
              hold_standard_descriptors();
              if (open("/dev/null", O_RDWR) <= 2) return 1;
              char byte = 0;
              if (read(0, &byte, 1) >= 0 || errno != EBADF) return 2;
              if (write(1, "x", 1) >= 0 || errno != EBADF) return 3;
              return write(2, "x", 1) >= 0 || errno != EBADF ? 4 : 0;
            }),
            0);
}

TEST(ProgramStartTest, OpenDescriptorsAreLeftAlone) {
  EXPECT_EQ(in_a_child([] {
              int pipe_ends[2];
              if (pipe(pipe_ends) != 0 || dup2(pipe_ends[1], 1) != 1) return 1;
              close(0);
              hold_standard_descriptors();
              char byte = 0;
              return write(1, "x", 1) == 1 && read(pipe_ends[0], &byte, 1) == 1 && byte == 'x' ? 0 : 2;
            }),
            0);
}

constexpr const char* kVariable = "SHOAL_TEST_STARTED_ANEW";
constexpr int kWentOn = 9;

// Where it is started anew, this program runs the test below, and its exit code says how that went.
int start_the_test_below_anew() {
  char name[] = "a name of its own", filter[] = "--gtest_filter=ProgramStartTest.*InTheNewStart",
       disabled[] = "--gtest_also_run_disabled_tests";
  char* const words[] = {name, filter, disabled, nullptr};
  start_anew_with(kVariable, "yes", words);
  return kWentOn;
}

TEST(ProgramStartTest, StartsAnewOnceWithItsWordsAndTheVariable) {
  EXPECT_EQ(in_a_child(start_the_test_below_anew), 0);
}

TEST(ProgramStartTest, DISABLED_InTheNewStart) {
  ASSERT_STREQ(getenv(kVariable), "yes");
  EXPECT_EQ(start_the_test_below_anew(), kWentOn) << "once is enough";
}

TEST(ProgramStartTest, DoesNotStartAnewWhereTheVariableIsSet) {
  EXPECT_EQ(in_a_child([] {
              setenv(kVariable, "the user's", 1);
              return start_the_test_below_anew() == kWentOn && getenv(kVariable) == std::string("the user's") ? 0 : 1;
            }),
            0);
}

TEST(ProgramStartTest, NoCoreFileIsWrittenAnyMore) {
  EXPECT_EQ(in_a_child([] {
              if (!forbid_core_files().ok()) return 1;
              rlimit limit{1, 1};
              getrlimit(RLIMIT_CORE, &limit);
              return limit.rlim_cur == 0 && limit.rlim_max == 0 ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace shoal
