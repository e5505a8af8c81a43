#pragma once
// What every EventLoop keeps. Instantiate with a rig of loop_rig.h's shape:
//   INSTANTIATE_TYPED_TEST_SUITE_P(Real, EventLoopContract, RealLoopRig);
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "common/event_loop.h"
#include "tests/common/loop_rig.h"

namespace shoal {

template <class Rig>
class EventLoopContract : public testing::Test {
 protected:
  Rig rig_;
  EventLoop& loop() { return rig_.loop(); }
};
TYPED_TEST_SUITE_P(EventLoopContract);

TYPED_TEST_P(EventLoopContract, PostedTasksRunInOrderAndInALaterTurn) {
  std::vector<int> order;
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    for (int i = 1; i <= 3; ++i) this->loop().post([&order, i] { order.push_back(i); });
    this->loop().post(finish);
    order.push_back(0);
  }));
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3));
}

TYPED_TEST_P(EventLoopContract, TimersRunByTimeAndThenByCreation) {
  std::vector<int> order;
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    const TimePoint base = this->loop().now() + 5ms;
    this->loop().at(base + 2ms, [&] { order.push_back(4); });
    this->loop().at(base, [&] { order.push_back(1); });
    this->loop().at(base, [&] { order.push_back(2); });
    this->loop().at(base + 1ms, [&] { order.push_back(3); });
    this->loop().at(base + 3ms, finish);
  }));
  EXPECT_THAT(order, testing::ElementsAre(1, 2, 3, 4));
}

TYPED_TEST_P(EventLoopContract, TimerNeverRunsEarly) {
  TimePoint wanted, got;
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    wanted = this->loop().now() + 7ms;
    this->loop().at(wanted, [&, finish] {
      got = this->loop().now();
      finish();
    });
  }));
  EXPECT_GE(got, wanted);
}

TYPED_TEST_P(EventLoopContract, CancelledTimerNeverRunsAlsoWhenDueInTheSameTurn) {
  bool ran = false;
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    const TimePoint when = this->loop().now() + 2ms;
    auto victim = std::make_shared<TimerId>(0);
    this->loop().at(when, [this, victim] { this->loop().cancel(*victim); });
    *victim = this->loop().at(when, [&] { ran = true; });
    const TimerId other = this->loop().at(when, [&] { ran = true; });
    this->loop().cancel(other);
    this->loop().at(when + 1ms, finish);
  }));
  EXPECT_FALSE(ran);
}

TYPED_TEST_P(EventLoopContract, CancellingWhatRanOrNeverWasIsHarmless) {
  int ran = 0;
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    this->loop().cancel(0);
    this->loop().cancel(~TimerId{0});
    auto first = std::make_shared<TimerId>(0);
    *first = this->loop().after(1ms, [&, first] {
      ++ran;
      this->loop().cancel(*first);  // itself
    });
    this->loop().after(2ms, [&, first, finish] {
      this->loop().cancel(*first);
      this->loop().cancel(*first);
      ++ran;
      finish();
    });
  }));
  EXPECT_EQ(ran, 2);
}

TYPED_TEST_P(EventLoopContract, TimeIsConstantWithinATurn) {
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    const TimePoint before = this->loop().now();
    const TimePoint real_start = monotonic_now();
    while (monotonic_now() - real_start < 1ms) {
    }
    EXPECT_EQ(this->loop().now(), before);
    this->loop().post([&, before, finish] {
      EXPECT_GE(this->loop().now(), before);
      finish();
    });
  }));
}

TYPED_TEST_P(EventLoopContract, TimerInThePastRunsInTheNextTurnNotInThisOne) {
  std::vector<int> order;
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    this->loop().after(1ms, [&, finish] {
      this->loop().at(TimePoint(), [&, finish] {
        order.push_back(3);
        finish();
      });
      this->loop().post([&] { this->loop().after(0ms, [&] { order.push_back(9); }); });
      order.push_back(1);
    });
    this->loop().after(1ms, [&] { order.push_back(2); });
  }));
  ASSERT_GE(order.size(), 3u);
  EXPECT_EQ(order[0], 1);
  // The second timer may be due a turn later on a real clock; the one in the past is never before what made it.
  EXPECT_THAT(order, testing::Contains(3));
}

TYPED_TEST_P(EventLoopContract, TimerIdsAreNeverZeroAndNeverReused) {
  std::set<TimerId> ids;
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    for (int i = 0; i < 100; ++i) {
      const TimerId id = this->loop().after(1ms, [] {});
      ids.insert(id);
      if (i % 2 == 0) this->loop().cancel(id);
    }
    this->loop().after(2ms, [&, finish] {
      for (int i = 0; i < 100; ++i) ids.insert(this->loop().after(0ms, [] {}));
      finish();
    });
  }));
  EXPECT_EQ(ids.size(), 200u);
  EXPECT_FALSE(ids.contains(0));
}

TYPED_TEST_P(EventLoopContract, ATaskThatPostsForEverDoesNotStarveTimers) {
  int turns = 0;
  bool over = false;
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    auto again = std::make_shared<std::function<void()>>();
    *again = [&, again = again.get()] {
      ++turns;
      if (!over) this->loop().post(*again);
    };
    this->loop().post(*again);
    this->loop().post([this, &over, again, finish] {
      this->loop().after(0ms, [&over, again, finish] {
        over = true;
        finish();
      });
    });
  }));
  EXPECT_GT(turns, 0);
  EXPECT_TRUE(over);
}

REGISTER_TYPED_TEST_SUITE_P(EventLoopContract, PostedTasksRunInOrderAndInALaterTurn, TimersRunByTimeAndThenByCreation,
                            TimerNeverRunsEarly, CancelledTimerNeverRunsAlsoWhenDueInTheSameTurn,
                            CancellingWhatRanOrNeverWasIsHarmless, TimeIsConstantWithinATurn,
                            TimerInThePastRunsInTheNextTurnNotInThisOne, TimerIdsAreNeverZeroAndNeverReused,
                            ATaskThatPostsForEverDoesNotStarveTimers);

}  // namespace shoal
