#pragma once
// The accumulation windows of one replica: which counted entries each of the two accumulators holds, when a window
// closes and when its inner step may be made. Pure bookkeeping; the numbers live in the executor. Thread: loop only.
// Bounds: two windows, never more.
//
// Two kinds (counted-once rules): an inner window closes when its targets reach the inner batch and steps when all its
// entries are settled; a step window (rule allreduce) belongs to one step, lies in the slot of the step's parity,
// closes at STEP and is consumed by a round.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "stages/executor.h"

namespace shoal {

class Windows {
 public:
  struct Entry {
    std::uint64_t targets = 0;
    WeightStamp stamp = 0;
    bool settled = false;
  };
  struct Window {
    WindowSlot slot = WindowSlot::kA;
    StepId step;  // 0: an inner window
    bool closed = false;
    std::map<EntrySerial, Entry> entries;
    std::uint64_t number = 0;       // rising, for logs
    std::uint64_t run_targets = 0;  // committed by the run when it closed: what its learning rate follows
    TimePoint closed_at{};
    std::optional<TimePoint> settled_at{};  // closed, and nothing in it can be undone any more
    std::uint64_t targets() const;
    bool all_settled() const;
    std::uint64_t settle_wait_ms() const;  // from closed to settled, rounded up; 0 while it is not
  };

  explicit Windows(std::uint64_t inner_batch) : inner_batch_(inner_batch) {}

  // The slot a backward of this step may add to now, opening a window if there is room; nullopt: it waits
  // (`window_wait`).
  std::optional<WindowSlot> room(StepId step);
  bool has_room(StepId step) const;
  // Takes the entry's place when its backward starts; its stamp is set when that is done. REQUIRES: room() gave `slot`.
  void add(WindowSlot slot, EntrySerial serial, std::uint64_t targets, WeightStamp stamp);
  void set_stamp(EntrySerial serial, WeightStamp stamp);
  void settle(EntrySerial serial);
  void remove(EntrySerial serial);       // undone, or its backward failed; an emptied window is gone
  bool alone(EntrySerial serial) const;  // the only entry of its window
  void flush();                          // closes open inner windows
  // The run's committed targets, as far as known here: a window keeps those of its close. Only rises.
  void note_run(std::uint64_t targets) { run_targets_ = std::max(run_targets_, targets); }
  std::uint64_t run_targets() const { return run_targets_; }
  void close_step(StepId step);
  // The time of what comes next, as far as the caller knows it: windows keep when they were closed and settled.
  void note_time(TimePoint now) { now_ = std::max(now_, now); }

  // The oldest inner window if it may step now: closed, all settled, and no unsettled entry was made at the stamp
  // before `current`, whose parameters the step overwrites.
  const Window* ready(WeightStamp current) const;
  const Window* step_window(StepId step) const;  // nullptr: this replica holds nothing of the step
  // How many unsettled entries were made at the stamp before `current`: writes wait until it is 0.
  std::size_t unsettled_at_other(WeightStamp current) const;
  std::uint64_t steps_due() const;  // closed inner windows: each makes a step before one that is open now does
  void pop(WindowSlot slot);        // stepped, merged or emptied
  bool empty() const { return !windows_[0] && !windows_[1]; }
  std::optional<WindowSlot> slot_of(EntrySerial serial) const;
  const Window* at(WindowSlot slot) const;

 private:
  Window* find_open(StepId step);
  void close(Window& window);
  void note_settled(Window& window) const;
  static std::size_t index(WindowSlot slot) { return static_cast<std::size_t>(slot); }

  std::uint64_t inner_batch_;
  std::uint64_t opened_ = 0;
  std::uint64_t run_targets_ = 0;
  TimePoint now_{};
  std::optional<Window> windows_[2];
};

}  // namespace shoal
