#include "transport/line_fill.h"

#include <gtest/gtest.h>

#include <map>

#include "common/rng.h"
#include "transport/limits.h"

namespace shoal {
namespace {

// A line with a queue that never drops, and senders that share it, in virtual time. A chunk's credit comes a round trip
// after its last byte has left the queue.
class Line {
 public:
  Line(double megabits, Duration rtt, int senders = 1) : rate_(megabits * 125'000), rtt_(rtt), senders_(senders) {}
  // Somebody else keeps so much in the line's queue.
  void set_strange_queue(Duration queue) { strange_ = queue; }
  void set(double megabits, Duration rtt) { rate_ = megabits * 125'000, rtt_ = rtt; }
  LineFill& fill(int sender = 0) { return senders_[static_cast<std::size_t>(sender)].fill; }
  TimePoint now() const { return now_; }

  struct Seen {
    double of_rate = 0;                  // delivered, as a share of what the line could carry
    Duration queue_mean{}, queue_max{};  // in front of what is sent
  };
  // All senders have more to say than fits.
  Seen full(Duration time) {
    const TimePoint end = now_ + time;
    const std::uint64_t before = delivered_;
    Duration queue_max{}, queue_sum{};
    for (int times = 0;; ++times) {
      for (Sender& sender : senders_) {
        while (sender.fill.room() >= sender.fill.chunk_bytes()) send(sender, sender.fill.chunk_bytes());
        sender.fill.on_held();
      }
      queue_max = std::max(queue_max, free_at_ - now_);
      queue_sum += std::max(free_at_ - now_, Duration::zero());
      if (credits_.empty() || credits_.begin()->first > end) {
        now_ = end;
        return {static_cast<double>(delivered_ - before) / (rate_ * seconds_of(time)), queue_sum / (times + 1),
                queue_max};
      }
      take_credit();
    }
  }
  // One message of `bytes` each `period`, as far as there is room.
  void now_and_then(Duration time, Duration period, std::uint64_t bytes) {
    for (const TimePoint end = now_ + time; now_ < end;) {
      Sender& sender = senders_.front();
      for (std::uint64_t left = bytes; left > 0;) {
        const std::uint64_t chunk = std::min(left, sender.fill.chunk_bytes());
        if (sender.fill.room() < chunk) break;
        send(sender, chunk);
        left -= chunk;
      }
      const TimePoint next = now_ + period;
      while (!credits_.empty() && credits_.begin()->first <= next) take_credit();
      now_ = next;
    }
  }

 private:
  struct Sender {
    LineFill fill;
  };
  void send(Sender& sender, std::uint64_t bytes) {
    sender.fill.on_sent(now_, bytes);
    // The stranger takes what is free of the queue.
    free_at_ = std::max(free_at_, now_ + strange_) + from_seconds(static_cast<double>(bytes) / rate_);
    credits_.emplace(free_at_ + rtt_, std::make_pair(&sender, bytes));
  }
  void take_credit() {
    const auto [when, credit] = *credits_.begin();
    credits_.erase(credits_.begin());
    now_ = when;
    credit.first->fill.on_delivered(now_, credit.second);
    delivered_ += credit.second;
  }

  double rate_;
  Duration rtt_, strange_{};
  std::vector<Sender> senders_;
  TimePoint now_{100s}, free_at_{100s};
  std::multimap<TimePoint, std::pair<Sender*, std::uint64_t>> credits_;
  std::uint64_t delivered_ = 0;
};

TEST(LineFillTest, FillsALineAndKeepsItsQueueShort) {
  for (const double megabits : {5.0, 20.0, 100.0, 1000.0}) {
    for (const Duration rtt : {1ms, 40ms, 100ms, 250ms}) {
      Line line(megabits, rtt);
      line.full(5s);
      const Line::Seen seen = line.full(60s);
      EXPECT_GE(seen.of_rate, 0.96) << megabits << " Mbit/s, " << rtt / 1ms << " ms";
      const Duration chunk = from_seconds(limits::kChunkBytesMin / (megabits * 125'000));
      EXPECT_LE(seen.queue_mean, rtt * 2 / 3 + 13ms + 4 * chunk) << megabits << " Mbit/s, " << rtt / 1ms << " ms";
      EXPECT_LE(seen.queue_max, rtt * 3 / 2 + 25ms + 5 * chunk)
          << "behind a drain; " << megabits << " Mbit/s, " << rtt / 1ms << " ms";
    }
  }
}

TEST(LineFillTest, ALongFatLineIsFilledInAFewRoundTrips) {
  Line line(1000, 100ms);
  EXPECT_GE(line.full(2s).of_rate, 0.4);
  EXPECT_GE(line.full(4s).of_rate, 0.95);
}

TEST(LineFillTest, FollowsALineThatIsSlowerOrFaster) {
  Line line(100, 40ms);
  line.full(5s);
  line.set(10, 40ms);
  line.full(4s);
  Line::Seen seen = line.full(20s);
  EXPECT_GE(seen.of_rate, 0.9);
  EXPECT_LE(seen.queue_mean, 80ms);
  line.set(100, 40ms);
  line.full(2s);
  EXPECT_GE(line.full(20s).of_rate, 0.95);
}

// By the least time of before, ever less would be under way on a way that is longer, and ever less delivered.
TEST(LineFillTest, AWayThatBecameLongerIsFilledAgain) {
  Line line(100, 10ms);
  line.full(11s);
  line.set(100, 150ms);
  line.full(21s);
  EXPECT_GE(line.full(4s).of_rate, 0.9) << "within two periods";
  line.set(100, 10ms);
  line.full(25s);
  EXPECT_LE(line.full(9s).queue_mean, 30ms) << "and one that became shorter is known within two periods";
}

TEST(LineFillTest, AStrangerWhoFillsTheQueueLeavesUsAShare) {
  Line line(20, 100ms);
  line.full(10s);
  const std::uint64_t bound = line.fill().bound();
  line.set_strange_queue(80ms);
  line.full(8s);
  EXPECT_GE(line.fill().bound(), bound / 5);
  line.full(4s);
  EXPECT_GE(line.fill().bound(), bound / 5) << "a drain does not end it";
  line.set_strange_queue(0ms);
  line.full(30s);
  const Line::Seen seen = line.full(30s);
  EXPECT_GE(seen.of_rate, 0.95);
  EXPECT_LE(seen.queue_mean, 75ms);
}

TEST(LineFillTest, ASenderWithLittleToSayLearnsNothingOfTheLine) {
  Line line(100, 40ms);
  line.full(5s);
  const std::uint64_t bound = line.fill().bound();
  line.now_and_then(120s, 60ms, 100'000);
  EXPECT_GE(line.fill().bound(), bound / 10 * 9);
  EXPECT_LE(line.fill().bound(), bound / 10 * 12);
}

// Each takes for the way alone what it meets while the others are on it, unless all drain at once.
TEST(LineFillTest, ManyLinksOfOneLineKeepItsQueueShortForLong) {
  Line line(100, 40ms, 8);
  line.full(60s);
  const Line::Seen seen = line.full(600s);
  EXPECT_GE(seen.of_rate, 0.96);
  EXPECT_LE(seen.queue_mean, 60ms);
}

TEST(LineFillTest, WhateverIsSaidToBeDeliveredSomeMayBeSent) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    LineFill fill;
    TimePoint now(1s);
    for (int i = 0; i < 20'000; ++i) {
      now += Duration(static_cast<std::int64_t>(rng.below(rng.chance(0.01) ? 20'000'000'000 : 5'000'000)));
      if (rng.chance(0.5) && fill.room() >= fill.chunk_bytes()) fill.on_sent(now, fill.chunk_bytes());
      if (rng.chance(0.3)) fill.on_held();
      if (rng.chance(0.5)) fill.on_delivered(now, rng.below(3 * limits::kChunkBytes));
      ASSERT_LE(fill.bound(), limits::kByteCreditsMax);
      ASSERT_GE(fill.bound(), 2 * fill.chunk_bytes());
      ASSERT_GE(fill.chunk_bytes(), limits::kChunkBytesMin);
      ASSERT_LE(fill.chunk_bytes(), limits::kChunkBytes);
      ASSERT_TRUE(fill.under_way() > 0 || fill.room() >= fill.chunk_bytes());
    }
  }
}

}  // namespace
}  // namespace shoal
