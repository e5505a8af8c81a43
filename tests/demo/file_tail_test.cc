#include "demo/file_tail.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FileTailTest, GivesWholeLinesOnceAndInOrder) {
  const ScratchFolder folder;
  FileTail tail(folder / "log");
  EXPECT_THAT(tail.new_lines(), IsEmpty());
  std::ofstream file(folder / "log");
  file << "one\ntwo\nthr" << std::flush;
  EXPECT_THAT(tail.new_lines(), ElementsAre("one", "two"));
  EXPECT_THAT(tail.new_lines(), IsEmpty());
  file << "ee\n\nfive" << std::flush;
  EXPECT_THAT(tail.new_lines(), ElementsAre("three", ""));
}

TEST(FileTailTest, LinesLongerThanABlockAreWhole) {
  const ScratchFolder folder;
  const std::string line(200'000, 'x');
  folder.write("log", line + "\n" + line + "\n");
  EXPECT_THAT(FileTail(folder / "log").new_lines(), ElementsAre(line, line));
}

TEST(WaitForLineTest, GivesWhatFollowsAlsoOfAProcessThatHasEnded) {
  const ScratchFolder folder;
  FileTail tail(folder.write("out", "one\nticket abc\n"));
  const auto ended = []() -> Status { return make_error(ErrorCode::kUnreachable, "it ended"); };
  const auto ticket = wait_for_line(tail, "ticket ", folder / "err", 0s, ended);
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ(*ticket, "abc");
  EXPECT_EQ(wait_for_line(tail, "ticket ", folder / "err", 0s, ended).error().message, "it ended");
}

TEST(WaitForLineTest, SaysWhatTheProcessSaidWhenNoneComes) {
  const ScratchFolder folder;
  FileTail tail(folder / "out");
  const auto line = wait_for_line(tail, "port ", folder.write("err", "why\n"), 0s, [] { return Status(); });
  ASSERT_FALSE(line.ok());
  EXPECT_NE(line.error().message.find("no line \"port ...\""), std::string::npos);
  EXPECT_NE(line.error().message.find("why"), std::string::npos);
}

TEST(LastLinesTest, AreTheLastOnesIndented) {
  const ScratchFolder folder;
  EXPECT_EQ(last_lines(folder.write("log", "a\nb\nc\n"), 2), "\n    b\n    c");
  EXPECT_EQ(last_lines(folder / "absent", 2), "");
}

}  // namespace
}  // namespace shoal
