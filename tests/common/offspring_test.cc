#include "common/os/offspring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "common/os/executable.h"
#include "common/os/thread_loop.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

TimePoint soon() { return monotonic_now() + 10s; }

Offspring shell(const std::string& script, const ScratchFolder& folder) {
  auto child = Offspring::start({.words = {"/bin/sh", "-c", script},
                                 .output_path = folder / "out",
                                 .error_path = folder / "err",
                                 .environment = {{"SHOAL_WORD", "red"}}});
  EXPECT_TRUE(child.ok()) << child.error().message;
  return *std::move(child);
}

TEST(OffspringTest, WritesToItsFilesAndEndsWithItsCode) {
  const ScratchFolder folder;
  Offspring child = shell("echo $SHOAL_WORD; echo blue >&2; exit 7", folder);
  EXPECT_EQ(child.wait_until(soon()), std::optional<int>(7));
  EXPECT_EQ(ScratchFolder::read(folder / "out"), "red\n");
  EXPECT_EQ(ScratchFolder::read(folder / "err"), "blue\n");
  EXPECT_FALSE(child.running());
}

TEST(OffspringTest, ASignalsEndIsToldApart) {
  const ScratchFolder folder;
  Offspring child = shell("exec sleep 100", folder);
  EXPECT_TRUE(child.running());
  child.send_signal(SIGKILL);
  EXPECT_EQ(child.wait_until(soon()), std::optional<int>(128 + SIGKILL));
}

TEST(OffspringTest, AProgramThatDoesNotExistIsAnErrorAtTheStart) {
  const auto child = Offspring::start({{"/no/such/program"}, "", ""});
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.code(), ErrorCode::kMissing);
  EXPECT_THAT(child.error().message, HasSubstr("/no/such/program"));
}

TEST(OffspringTest, WaitingHasADeadline) {
  const ScratchFolder folder;
  Offspring child = shell("exec sleep 100", folder);
  EXPECT_EQ(child.wait_until(monotonic_now() + 30ms), std::nullopt);
  EXPECT_TRUE(child.running());
}

TEST(OffspringTest, EndsWithItsOwner) {
  const ScratchFolder folder;
  pid_t pid = 0;
  {
    const Offspring child = shell("exec sleep 100", folder);
    pid = child.pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(OffspringTest, AFrozenOneEndsWithItsOwnerToo) {
  const ScratchFolder folder;
  pid_t pid = 0;
  {
    Offspring child = shell("exec sleep 100", folder);
    child.send_signal(SIGSTOP);
    pid = child.pid();
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(OffspringTest, HasAProcessGroupOfItsOwn) {
  const ScratchFolder folder;
  Offspring child = shell("exec sleep 100", folder);
  EXPECT_EQ(getpgid(child.pid()), child.pid());
}

TEST(OffspringTest, AssigningANewOneEndsTheOld) {
  const ScratchFolder folder;
  Offspring child = shell("exec sleep 100", folder);
  const pid_t first = child.pid();
  child = shell("exec sleep 100", folder);
  EXPECT_NE(kill(first, 0), 0);
  EXPECT_TRUE(child.running());
}

TEST(OwnProgramTest, IsThisTest) {
  const auto path = own_program();
  ASSERT_TRUE(path.ok());
  EXPECT_THAT(*path, HasSubstr("common_test"));
}

}  // namespace
}  // namespace shoal
