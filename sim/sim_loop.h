#pragma once
// A loop in virtual time: nothing waits, time jumps to the next timer. Deterministic: the same calls give the same
// trace hash.
#include <cstdint>
#include <functional>
#include <vector>

#include "common/event_loop.h"
#include "common/timer_queue.h"

namespace shoal {

// Thread: one for everything (post() too). A turn = the timers that are due, then the tasks posted before the turn
// began.
class SimLoop final : public EventLoop {
 public:
  // Virtual time starts at 1 s, so that a default TimePoint lies in the past; wall time starts at `wall_start`.
  explicit SimLoop(WallTime wall_start = WallTime(std::chrono::seconds(1'700'000'000)));

  TimePoint now() const override { return now_; }
  WallTime wall() const override { return wall_start_ + (now_ - kStart); }
  void post(std::function<void()> task) override;
  TimerId at(TimePoint when, std::function<void()> task) override;
  void cancel(TimerId timer) override;

  // Runs one turn, jumping to the next timer when nothing is due. False when there is nothing left to run.
  // CHECKS: a million turns without time moving are a livelock.
  bool step();
  // Runs every turn up to and including `until`; time is `until` afterwards.
  void run_until(TimePoint until);
  void run_for(Duration duration) { run_until(now_ + duration); }
  // Steps until `done` holds (asked between turns); false when time passed `limit` or nothing is left.
  bool run_until_true(const std::function<bool()>& done, TimePoint limit);

  // A hash over what ran: the time of every turn, its timers and posts, and the words given to note().
  std::uint64_t trace_hash() const { return trace_; }
  void note(std::uint64_t word);
  std::uint64_t turns() const { return turns_; }
  // The most bytes that one callback went through so far (common/bulk_bytes.h), jobs of devices left out.
  std::uint64_t most_bulk_bytes() const { return most_bulk_bytes_; }
  void forget_bulk_bytes() { most_bulk_bytes_ = 0; }
  bool idle() const { return posted_.empty() && timers_.size() == 0; }

 private:
  void turn();
  void run_counted(const std::function<void()>& task);

  static constexpr TimePoint kStart{std::chrono::seconds(1)};
  static constexpr std::uint64_t kTurnsAtOneTimeMax = 1'000'000;
  WallTime wall_start_;
  TimePoint now_ = kStart;
  TimerQueue timers_;
  std::vector<std::function<void()>> posted_;
  std::uint64_t posts_ = 0;
  std::uint64_t turns_ = 0;
  std::uint64_t most_bulk_bytes_ = 0;
  std::uint64_t turns_at_this_time_ = 0;
  std::uint64_t trace_ = 0;
};

}  // namespace shoal
