// What lending is made of, without processes: the unit, the line of shell, and what nvidia-smi says.
#include <gtest/gtest.h>

#include "lend/gpu_use.h"
#include "lend/lend_unit.h"

namespace shoal {
namespace {

constexpr char kTable[] =
    "# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command \n"
    "# Idx           #    C/G      %      %      %      %      %      %    name \n"
    "    0         71     C     93     12      -      -      -      -    python         \n"
    "    0         72     G      3      1      -      -      -      -    Xorg           \n"
    "    0         73     C      -      -      -      -      -      -    shoal          \n";

TEST(GpuUseTest, AnotherProgramThatComputesIsNamedAndOnesThatMerelyHoldMemoryAreNot) {
  const auto use = gpu_use_in(kTable, 73);
  ASSERT_TRUE(use.ok());
  EXPECT_TRUE(use->own);
  EXPECT_EQ(use->others, "python (process 71)");
  const auto ours = gpu_use_in(kTable, 71);
  EXPECT_TRUE(ours->own);
  EXPECT_EQ(ours->others, "");
  EXPECT_FALSE(gpu_use_in(kTable, 1)->own);
}

TEST(GpuUseTest, ATableWithNobodyIsATableAndAnErrorIsNone) {
  const std::string heads(kTable, std::string(kTable).find("    0 "));
  const auto nobody = gpu_use_in(heads + "    0          -     -      -      -      -      -      -      -    -\n", 7);
  ASSERT_TRUE(nobody.ok());
  EXPECT_EQ(nobody->others, "");
  EXPECT_EQ(gpu_use_in("", 7).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(gpu_use_in("No devices were found\n", 7).code(), ErrorCode::kUnsupported);
}

TEST(GpuBusyTest, TwoLooksInARowMakeItBusyAndAMinuteWithoutMakesItFree) {
  constexpr TimePoint kStart = TimePoint{} + 100s;
  GpuBusy busy;
  busy.note("python", kStart);
  EXPECT_EQ(busy.text(), "");
  busy.note("", kStart + 5s);
  busy.note("python", kStart + 10s);
  EXPECT_EQ(busy.text(), "") << "a look without it lay between";
  busy.note("python", kStart + 15s);
  EXPECT_EQ(busy.text(), "the GPU is busy with python");
  busy.note("", kStart + 74s);
  EXPECT_NE(busy.text(), "");
  busy.note("", kStart + 75s);
  EXPECT_EQ(busy.text(), "");
}

TEST(LendUnitTest, WordsAreQuotedAsSystemdAndAShellReadThem) {
  const std::vector<std::string> words = {"/opt/my shoal", "join", "a\"b\\c$d%e'f"};
  EXPECT_NE(lend_unit(words, {}).find("\nExecStart=:\"/opt/my shoal\" \"join\" \"a\\\"b\\\\c$d%%e'f\"\n"),
            std::string::npos)
      << lend_unit(words, {});
  EXPECT_EQ(lend_loop(words),
            "while '/opt/my shoal' join 'a\"b\\c$d%e'\\''f'; code=$?; do case $code in "
            "0|64|65|66|73|76|77|78|130|143|129) break ;; esac; sleep 30; done");
}

TEST(LendUnitTest, AWordWithALinesEndAddsNoSettingAndVariablesStandBeforeTheCommand) {
  const std::string unit = lend_unit({"/opt/shoal", "join\nNice=-5"}, {"XDG_DATA_HOME=/a b", "SHOAL_TORCH_ROOT=/t"});
  EXPECT_NE(unit.find("\nEnvironment=\"XDG_DATA_HOME=/a b\" \"SHOAL_TORCH_ROOT=/t\"\n"
                      "ExecStart=:\"/opt/shoal\" \"join\\x0aNice=-5\"\n"),
            std::string::npos)
      << unit;
}

}  // namespace
}  // namespace shoal
