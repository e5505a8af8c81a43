#include "common/status_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/log.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;

// The test's terminal. Lines of the log go to the process's own stderr, in between.
class StatusLineTest : public testing::Test {
 protected:
  void be_terminal(std::size_t columns) {
    set_status_terminal([this](std::string_view bytes) { drawn_.emplace_back(bytes); }, columns);
  }
  ~StatusLineTest() override {
    set_log_sink({});
    set_log_level(LogLevel::kInfo);
    set_status_terminal({}, 0);
  }
  std::vector<std::string> drawn_;
};

TEST_F(StatusLineTest, IsDrawnAnewInPlace) {
  be_terminal(80);
  EXPECT_TRUE(status_in_place());
  EXPECT_EQ(status_columns(), 79u);
  show_status("one");
  show_status("two");
  EXPECT_THAT(drawn_, ElementsAre("\r\x1b[Kone", "\r\x1b[Ktwo"));
  end_status();
  end_status();
  EXPECT_THAT(drawn_, ElementsAre("\r\x1b[Kone", "\r\x1b[Ktwo", "\n")) << "it stays, and is ended once";
}

TEST_F(StatusLineTest, ALineOfTheLogGoesAboveIt) {
  be_terminal(80);
  show_status("one");
  drawn_.clear();
  testing::internal::CaptureStderr();
  log_info("news");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("news\n"));
  EXPECT_THAT(drawn_, ElementsAre("\r\x1b[K", "one"));
}

TEST_F(StatusLineTest, NeverWrapsAndObeysNobody) {
  be_terminal(20);
  show_status(std::string(50, 'a'));
  show_status("red \x1b[31m");
  ASSERT_EQ(drawn_.size(), 2u);
  EXPECT_EQ(drawn_[0].size(), 4u + 19u);
  EXPECT_EQ(drawn_[1], "\r\x1b[Kred \\x1b[31m");
}

TEST_F(StatusLineTest, IsNotShownToWhoWantsQuiet) {
  be_terminal(80);
  set_log_level(LogLevel::kWarning);
  show_status("one");
  EXPECT_THAT(drawn_, ElementsAre());
}

TEST_F(StatusLineTest, WithoutATerminalItIsALineOfTheLogThatFits80Columns) {
  be_terminal(0);
  EXPECT_FALSE(status_in_place());
  EXPECT_EQ(status_columns(), 71u);
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  show_status(std::string(100, 'a'));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].size(), 71u);
  EXPECT_THAT(drawn_, ElementsAre());
}

}  // namespace
}  // namespace shoal
