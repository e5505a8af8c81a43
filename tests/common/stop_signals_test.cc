#include "common/os/stop_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "common/os/thread_loop.h"

namespace shoal {
namespace {

// Each test's child starts the program anew: in the fork of a process that has had threads TSan hands no signal on.
class StopSignalsTest : public testing::Test {
 protected:
  StopSignalsTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(StopSignalsTest, CtrlCAndATerminalThatGoesAwayAreHeardAndEndNothing) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    EXPECT_EXIT(
        {
          signal(SIGHUP, SIG_DFL);
          listen_for_stop();
          if (stop_wanted()) _exit(1);
          raise(number);
          _exit(stop_wanted() ? stop_exit_code() : 1);
        },
        testing::ExitedWithCode(128 + number), "");
}

TEST_F(StopSignalsTest, TheSecondOneEndsAProgramThatOnlyLooks) {
  EXPECT_EXIT(
      {
        listen_for_stop();
        raise(SIGTERM);
        raise(SIGINT);
        _exit(1);
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST_F(StopSignalsTest, WhatWasStartedToOutliveItsTerminalDoes) {
  EXPECT_EXIT(
      {
        signal(SIGHUP, SIG_IGN);
        listen_for_stop();
        raise(SIGHUP);
        _exit(stop_wanted() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

[[noreturn]] void hear_three_on_a_loop() {
  ThreadLoop loop;
  int first = 0, again = 0;
  const auto heard_first = [&] { ++first, raise(SIGINT); };
  const auto heard_again = [&] { ++again == 2 ? loop.stop() : void(raise(SIGINT)); };
  auto signals = StopSignals::listen(loop, heard_first, heard_again);
  loop.post([] { raise(SIGTERM); });
  loop.run();
  signals->reset();
  _exit(first == 1 && again == 2 ? stop_exit_code() : 1);
}

TEST_F(StopSignalsTest, ALoopHearsTheFirstOneAndEveryLaterOne) {
  EXPECT_EXIT(hear_three_on_a_loop(), testing::ExitedWithCode(128 + SIGTERM), "");
}

}  // namespace
}  // namespace shoal
