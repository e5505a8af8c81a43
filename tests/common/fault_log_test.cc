#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "common/fault.h"
#include "common/log.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

class LogTest : public testing::Test {
 protected:
  LogTest() {
    set_log_sink([this](LogLevel level, std::string_view line) {
      levels_.push_back(level);
      lines_.emplace_back(line);
    });
  }
  ~LogTest() override {
    disarm_faults();
    set_log_sink({});
    set_log_level(LogLevel::kInfo);
  }
  std::vector<LogLevel> levels_;
  std::vector<std::string> lines_;
};

TEST_F(LogTest, PartsBecomeOneLine) {
  log_info("stage ", 3, " is ", 0.5);
  EXPECT_THAT(lines_, testing::ElementsAre("stage 3 is 0.5"));
}

TEST_F(LogTest, LinesBelowTheLevelAreDropped) {
  log_debug("no");
  set_log_level(LogLevel::kWarning);
  log_info("no");
  log_warning("yes");
  log_error("yes");
  EXPECT_THAT(levels_, testing::ElementsAre(LogLevel::kWarning, LogLevel::kError));
}

TEST_F(LogTest, ControlCharactersOfStrangersAreEscaped) {
  log_info("name \x1b[2J\nfake line\x7f", std::string(1, '\0'));
  EXPECT_THAT(lines_, testing::ElementsAre("name \\x1b[2J\\x0afake line\\x7f\\x00"));
}

// A terminal obeys U+009B like ESC [, as two bytes of UTF-8 or, in other encodings, as one.
TEST(PrintableTest, ControlCharactersBeyondAsciiAreEscapedAndTextIsKept) {
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31mb"),
            "a\\xc2\\x9b31mb");
  EXPECT_EQ(printable("\xc2\x80\xc2\x9f\xc2\xa0"), "\\xc2\\x80\\xc2\\x9f\xc2\xa0");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");
  const std::string text = "K\xc3\xa4se \xe2\x82\xac \xf0\x9f\x90\x9f";  // two, three and four bytes
  EXPECT_EQ(printable(text), text);
}

TEST(PrintableTest, WhatIsNoUtf8IsEscapedByteByByte) {
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b") << "two bytes where one would do";
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b") << "the same with three";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a surrogate pair";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond U+10FFFF";
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82") << "cut short";
  EXPECT_EQ(printable("\xe2\x82x\xff"), "\\xe2\\x82x\\xff");
}

TEST(PrintableTest, ACutNeverLeavesHalfACharacter) {
  std::string euros;
  for (int i = 0; i < 10; ++i) euros += "\xe2\x82\xac";
  for (std::size_t limit = 4; limit < euros.size(); ++limit) {
    const std::string cut = printable(euros, limit);
    EXPECT_LE(cut.size(), limit);
    EXPECT_EQ(printable(cut), cut) << limit;
    EXPECT_TRUE(cut.ends_with("..."));
  }
}

TEST_F(LogTest, ALineIsCappedAlsoWhenEscapingMakesItLonger) {
  log_info(std::string(5000, 'a'));
  log_info(std::string(1000, '\n'));
  log_info(std::string(kLogLineBytesMax, 'b'));
  EXPECT_EQ(lines_[0].size(), kLogLineBytesMax);
  EXPECT_TRUE(lines_[0].ends_with("a..."));
  EXPECT_EQ(lines_[1].size(), kLogLineBytesMax);
  EXPECT_EQ(lines_[2], std::string(kLogLineBytesMax, 'b'));
}

TEST(LogSinkTest, LinesGoToStderrWithTheTimeOfDayAndALevelThatIsNotInfo) {
  testing::internal::CaptureStderr();
  log_info("plain");
  log_warning("look");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::ContainsRegex("^[0-9][0-9]:[0-9][0-9]:[0-9][0-9] plain\n"
                                     "[0-9][0-9]:[0-9][0-9]:[0-9][0-9] warning: look\n$"));
}

class FaultTest : public LogTest {};

TEST_F(FaultTest, UnarmedPointsDoNothing) { EXPECT_FALSE(SHOAL_FAULT("test.point")); }

TEST_F(FaultTest, AnErrorStrikesAtItsHitOnlyAndArmingWarns) {
  ASSERT_TRUE(arm_faults("test.point=error@3,test.always=error").ok());
  EXPECT_THAT(lines_, testing::Contains(testing::HasSubstr("test.point is armed")));
  EXPECT_EQ(levels_[0], LogLevel::kWarning);
  std::vector<bool> hits;
  for (int i = 0; i < 5; ++i) hits.push_back(SHOAL_FAULT("test.point"));
  EXPECT_THAT(hits, testing::ElementsAre(false, false, true, false, false));
  EXPECT_TRUE(SHOAL_FAULT("test.always"));
  EXPECT_TRUE(SHOAL_FAULT("test.always"));
  EXPECT_FALSE(SHOAL_FAULT("test.other"));
}

TEST_F(FaultTest, FromItsHitOnWhereAPlusFollowsAndSaidOnce) {
  ASSERT_TRUE(arm_faults("test.point=error@2+").ok());
  lines_.clear();
  std::vector<bool> hits;
  for (int i = 0; i < 4; ++i) hits.push_back(SHOAL_FAULT("test.point"));
  EXPECT_THAT(hits, testing::ElementsAre(false, true, true, true));
  EXPECT_THAT(lines_, testing::ElementsAre(testing::HasSubstr("test.point strikes")));
  for (const char* bad : {"a=error@+", "a=error@2++", "a=error@0+"}) EXPECT_FALSE(arm_faults(bad).ok()) << bad;
}

TEST_F(FaultTest, ADelaySleepsAndAHoldStaysTrue) {
  ASSERT_TRUE(arm_faults("test.delay=delay:30,test.hold=hold:3600@2").ok());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(SHOAL_FAULT("test.delay"));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(30));
  EXPECT_FALSE(SHOAL_FAULT("test.hold"));
  EXPECT_TRUE(SHOAL_FAULT("test.hold"));
  EXPECT_TRUE(SHOAL_FAULT("test.hold"));
}

TEST_F(FaultTest, AHoldEnds) {
  ASSERT_TRUE(arm_faults("test.hold=hold:1").ok());
  EXPECT_TRUE(SHOAL_FAULT("test.hold"));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (SHOAL_FAULT("test.hold") && std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_FALSE(SHOAL_FAULT("test.hold"));
}

TEST_F(FaultTest, BadOptionsAreNamedAndArmNothing) {
  for (const char* option : {"", "a", "=kill", "a=", "a=explode", "a=hold", "a=delay:x", "a=kill@0", "a=kill@x",
                             "a=exit:256", "a=error,b=explode", "a=kill:1", "a=error,,b=error"}) {
    const Status status = arm_faults(option);
    if (*option == '\0') {
      EXPECT_TRUE(status.ok());
      continue;
    }
    ASSERT_FALSE(status.ok()) << option;
    EXPECT_EQ(status.code(), ErrorCode::kInput);
    EXPECT_THAT(status.error().message, testing::HasSubstr("HINT"));
  }
  EXPECT_FALSE(SHOAL_FAULT("a"));
}

#if SHOAL_WITH_NET
TEST(LogFileTest, LinesGoThereTooAndAFileThatCannotBeIsAnError) {
  const ScratchFolder folder;
  EXPECT_EQ(also_log_to("/proc/no/such/folder/log").code(), ErrorCode::kIo);
  ASSERT_TRUE(also_log_to(folder / "log").ok());
  log_info("peer ", 7, " serves");
  EXPECT_THAT(ScratchFolder::read(folder / "log"), testing::HasSubstr("info    peer 7 serves\n"));
}
#endif

TEST_F(FaultTest, NamesThatWereNeverReachedAreListed) {
  ASSERT_TRUE(arm_faults("test.here=error,test.mispelt=error").ok());
  (void)SHOAL_FAULT("test.here");
  EXPECT_THAT(faults_not_reached(), testing::ElementsAre("test.mispelt"));
}

TEST(FaultDeathTest, KillAndExitEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto strike = [](const char* option) {
    (void)arm_faults(option);
    for (int i = 0; i < 3; ++i) SHOAL_FAULT("test.end");
    std::_Exit(0);
  };
  EXPECT_EXIT(strike("test.end=kill@2"), testing::KilledBySignal(SIGKILL), "strikes");
  EXPECT_EXIT(strike("test.end=exit"), testing::ExitedWithCode(70), "strikes");
  EXPECT_EXIT(strike("test.end=exit:9@3"), testing::ExitedWithCode(9), "strikes");
  EXPECT_EXIT(strike("test.end=kill@4"), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace shoal
