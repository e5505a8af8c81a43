#include "transport/byte_pace.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/transport/wire_lab.h"
#include "transport/line_caps.h"

namespace shoal {
namespace {

TEST(BytePaceTest, PassesItsRateAfterASmallBurstAndWhatMayNotWaitIsPaidLater) {
  BytePace pace(1e6);
  TimePoint now(100s);
  std::uint64_t passed = 0;
  const auto pass = [&](std::uint64_t bytes) {
    for (; pace.passes_at(bytes) <= now; passed += bytes) pace.pass(now, bytes);
  };
  pass(1000);
  EXPECT_EQ(passed, 20'000u) << "20 ms of the line";
  for (int i = 0; i < 1000; ++i, now += 10ms) pass(1000);
  EXPECT_NEAR(static_cast<double>(passed), 10.01e6, 20e3);
  now = pace.passes_at(1000);
  pass(1000);
  EXPECT_EQ(pace.passes_at(100'000), now + 100ms) << "a large one after its own time, not after that of the last";
  pace.pay(500'000);
  EXPECT_EQ(pace.passes_at(1000), now + 501ms);
  pace.pay(1u << 30);
  EXPECT_EQ(pace.passes_at(1000), now + BytePace::kDebtMax + 1ms)
      << "a peer that floods us with control stops us for no longer";
  now += 60s;
  EXPECT_LE(pace.passes_at(1'000'000), now) << "a machine that was idle begins with a message of any size";
  pace.pass(now, 1'000'000);
  EXPECT_EQ(pace.passes_at(1'000'000), now + 1s);
  now += 900ms;
  pace.pay(1000);
  EXPECT_EQ(pace.passes_at(1'000'000), now + 101ms) << "what is under way does not begin again";
}

TEST(BytePaceTest, HoweverLongControlFillsTheLineAMessageWaitsNoLongerThanItsBoundBehindTheLast) {
  constexpr std::uint64_t kMessage = 8u << 10;
  constexpr Duration kStep = 10ms;
  for (const double share : {1.03, 20.0}) {  // of the line, by control
    BytePace pace(32e3);
    TimePoint now(100s), last = now;
    pace.pass(now, kMessage);
    const Duration longest = BytePace::kDebtMax + (pace.passes_at(kMessage) - now) + kStep;
    for (; now < TimePoint(400s); now += kStep) {
      pace.pay(static_cast<std::uint64_t>(share * 32e3 * seconds_of(kStep)));
      if (pace.passes_at(kMessage) <= now) {
        pace.pass(now, kMessage);
        last = now;
      }
      ASSERT_LE(now - last, longest) << share;
    }
  }
}

TEST(FairQueueTest, EqualPartsByBytesWhateverTheMessagesAndOrderWithinEach) {
  FairQueue queue;
  std::map<ConnectionId, std::uint64_t> taken, number;
  const auto fill = [&](ConnectionId connection, std::size_t size) {
    while (queue.cost_of(connection) < 4 * size) queue.push(connection, numbered_bytes(size, number[connection]++));
  };
  std::map<ConnectionId, std::uint64_t> next;
  for (int i = 0; i < 4000; ++i) {
    fill(1, 256u << 10);
    fill(2, 8u << 10);
    if (queue.cost_of(3) == 0) queue.push(3, numbered_bytes(16u << 10, number[3]++));  // one at a time
    const ConnectionId connection = queue.next();
    EXPECT_TRUE(same_bytes(queue.front(), numbered_bytes(queue.front().size(), next[connection]++)));
    taken[connection] += queue.front().size();
    queue.pop();
  }
  const auto most = static_cast<double>(std::max({taken[1], taken[2], taken[3]}));
  for (const ConnectionId connection : {1, 2, 3})
    EXPECT_GE(static_cast<double>(taken[connection]), 0.93 * most - (256u << 10)) << connection;
}

TEST(FairQueueTest, OneThatIsHeldDoesNotStopTheOthersAndOneThatIsForgottenIsGone) {
  FairQueue queue;
  for (const ConnectionId connection : {1, 2}) queue.push(connection, numbered_bytes(100, connection));
  EXPECT_EQ(queue.next(), 1u);
  queue.hold();
  queue.push(1, numbered_bytes(100, 3));
  EXPECT_EQ(queue.next(), 2u);
  queue.pop();
  EXPECT_TRUE(queue.empty());
  queue.release(2);
  EXPECT_TRUE(queue.empty());
  queue.release(1);
  EXPECT_EQ(queue.next(), 1u);
  EXPECT_EQ(queue.cost_of(1), 2 * (100 + FairQueue::kMessageCost));
  queue.forget(1);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.cost_of(1), 0u);
}

TEST(FairQueueTest, OneThatWasHeldTakesTurnsFromThenOnAndDoesNotCatchUp) {
  FairQueue queue;
  for (int i = 0; i < 40; ++i)
    for (const ConnectionId connection : {1, 2}) queue.push(connection, numbered_bytes(100, 0));
  EXPECT_EQ(queue.next(), 1u);
  queue.hold();
  for (int i = 0; i < 20; ++i) queue.pop();
  queue.release(1);
  std::map<ConnectionId, int> taken;
  for (int i = 0; i < 20; ++i) {
    ++taken[queue.next()];
    queue.pop();
  }
  EXPECT_NEAR(taken[1], 10, 1);
  EXPECT_EQ(taken[1] + taken[2], 20);
}

TEST(LineCapsTest, RatesAreReadAsPeopleWriteThemAndNonsenseIsNamed) {
  for (const auto& [text, megabits] : std::map<std::string, double>{
           {"20mbit", 20}, {"500kbit", 0.5}, {"1.5gbit", 1500}, {"20 Mbit/s", 20}, {"256kbit", 0.256}}) {
    const auto caps = line_caps_of(text, "");
    ASSERT_TRUE(caps.ok()) << caps.error().message;
    EXPECT_DOUBLE_EQ(caps->up, megabits * 125'000) << text;
    EXPECT_EQ(caps->down, 0);
  }
  EXPECT_FALSE(line_caps_of("", "")->any());
  EXPECT_EQ(line_caps_of("", "8mbit")->down, 1e6);
  const auto refusal = [](const std::string& text) {
    const auto caps = line_caps_of("1mbit", text);
    return caps.ok() || caps.code() != ErrorCode::kInput ? "taken" : caps.error().message;
  };
  constexpr char kForm[] = ". HINT: a number and kbit, mbit or gbit, as in 20mbit; a megabyte a second is 8mbit";
  for (const std::string text : {"fast", "mbit", "nan mbit", "inf", "-"})
    EXPECT_EQ(refusal(text), "--down " + text + ": it begins with no number" + kForm);
  EXPECT_EQ(refusal("20"), std::string("--down 20: it has no unit") + kForm);
  EXPECT_EQ(refusal("20MB/s"), std::string("--down 20MB/s: no unit is called 'MB'") + kForm);
  EXPECT_EQ(refusal("20mbitx"), std::string("--down 20mbitx: no unit is called 'mbitx'") + kForm);
  EXPECT_EQ(refusal("1e3mbit"), std::string("--down 1e3mbit: no unit is called 'e3mbit'") + kForm);
  for (const std::string text : {"0mbit", "-5mbit", "255kbit"})
    EXPECT_EQ(refusal(text), "--down " + text +
                                 ": too little for a peer, whose messages without tensors take some of it. HINT: "
                                 "256kbit or more, or no --down for no cap");
  EXPECT_NE(refusal("1001gbit").find("more than any line has"), std::string::npos);
}

}  // namespace
}  // namespace shoal
