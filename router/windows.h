#pragma once
// The accumulation windows of one replica and the steps made of them: which counted entries each of the two
// accumulators holds, when a window closes and when its inner step may be made, and which entries are stepped: in the
// parameters and in no committed round. Pure bookkeeping; the numbers live in the executor. Thread: loop only. Bounds:
// two windows, never more; rounds bound what is stepped.
//
// Two kinds (counted-once rules): an inner window closes when its targets reach the inner batch and steps when all its
// entries are settled; a step window (rule allreduce) belongs to one step, lies in the slot of the step's parity,
// closes at STEP and is consumed by a round.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "events/delay.h"

namespace shoal {

struct WindowsOptions {
  std::uint64_t inner_batch = 1;  // targets of an inner window
  std::uint64_t delay_max = 0;    // inner steps that a gradient for such a window may be late; 0: any number
  bool drain = false;             // a step's forwards wait until the step before is merged here
};

class Windows {
 public:
  struct Entry {
    std::uint64_t targets = 0;
    std::uint64_t first_step = 0;  // steps_made() when its forward was computed
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
    std::uint32_t rounds = 0;       // committed here while it was open
    TimePoint closed_at{};
    std::optional<TimePoint> settled_at{};  // closed, and nothing in it can be undone any more
    std::uint64_t targets() const;
    bool all_settled() const;
    std::uint64_t settle_wait_ms() const;  // from closed to settled, rounded up; 0 while it is not
  };

  explicit Windows(WindowsOptions options) : options_(options) {}

  // The slot a backward of this step may add to now, opening a window if there is room; nullopt: it waits.
  std::optional<WindowSlot> room(StepId step);
  bool has_room(StepId step) const;
  // By when the window that it would go into makes its step. Those of a global step are waited for.
  bool too_late(StepId step, std::uint64_t first_step) const;
  // Takes the entry's place when its backward starts; its stamp is set when that is done. REQUIRES: room() gave `slot`.
  void add(WindowSlot slot, EntrySerial serial, std::uint64_t targets, std::uint64_t first_step);
  void set_stamp(EntrySerial serial, WeightStamp stamp);
  void settle(EntrySerial serial);
  void remove(EntrySerial serial);       // undone, or its backward failed; an emptied window is gone
  bool alone(EntrySerial serial) const;  // the only entry of its window
  void flush();                          // closes open inner windows: end of the run, leaving
  // A round is committed here. An inner window that was open for kRoundsOpen closes: a replica that is asked seldom
  // would hold the few entries that it has, and with them the run's low-water mark, until its window is full.
  static constexpr std::uint32_t kRoundsOpen = 2;
  void note_round();
  // The run's committed targets, as far as known here: a window keeps those of its close. Only rises.
  void note_run(std::uint64_t targets) { run_targets_ = std::max(run_targets_, targets); }
  std::uint64_t run_targets() const { return run_targets_; }
  // The time of what comes next, as far as the caller knows it: windows keep when they were closed and settled.
  void note_time(TimePoint now) { now_ = std::max(now_, now); }

  // ---- writes of the parameters ----
  void wrote(WeightStamp stamp) { stamp_ = stamp; }    // a flip or shift
  void note_step(WindowSlot slot, WeightStamp stamp);  // an inner step of this window
  std::uint64_t steps_made() const { return steps_; }  // inner steps, and steps that rounds made; a shift is none
  // A committed round names this entry.
  void secure(EntrySerial serial);

  // ---- global steps: announced, then made by a round, in their order ----
  void close_step(StepId step);                          // announced
  void pop_step(StepId step);                            // its round is committed
  void start_behind(StepId step) { step_done_ = step; }  // the state that is served holds all steps up to it
  bool announced(StepId step) const { return announced_.contains(step); }
  // With `drain`: the trainer saw the step before merged everywhere, but that news may reach us behind a forward.
  bool too_early(StepId step) const { return options_.drain && step.value > step_done_.value + 1; }
  StepId step_done() const { return step_done_; }

  // ---- look ----
  // The oldest inner window if it may step now: closed, all settled, and no unsettled entry was made at the stamp
  // before the present one, whose parameters the step overwrites.
  const Window* ready() const;
  const Window* step_window(StepId step) const;  // nullptr: this replica holds nothing of the step
  // How many unsettled entries were made at the stamp before the present one: writes wait until it is 0.
  std::size_t unsettled_at_other() const;
  bool empty() const { return !windows_[0] && !windows_[1]; }
  std::optional<WindowSlot> slot_of(EntrySerial serial) const;
  bool holds(EntrySerial serial) const { return stepped_.contains(serial) || slot_of(serial).has_value(); }
  const Window* at(WindowSlot slot) const;
  // How late the gradients of a window are, weighed by their targets, were its step made now.
  DelayHistogram delays(WindowSlot slot) const;
  std::vector<EntrySerial> stepped() const;                           // in the parameters, in no committed round
  std::uint64_t stepped_targets() const { return stepped_targets_; }  // of these: every beat says it

 private:
  Window* find_open(StepId step);
  void close(Window& window);
  void note_settled(Window& window) const;
  static std::size_t index(WindowSlot slot) { return static_cast<std::size_t>(slot); }

  const WindowsOptions options_;
  std::uint64_t opened_ = 0;
  std::uint64_t run_targets_ = 0;
  TimePoint now_{};
  WeightStamp stamp_ = 0;
  std::uint64_t steps_ = 0;
  std::optional<Window> windows_[2];
  std::map<EntrySerial, std::uint64_t> stepped_;  // with their targets
  std::uint64_t stepped_targets_ = 0;
  std::set<StepId> announced_;  // not merged yet
  StepId step_done_;            // the newest merged one
};

}  // namespace shoal
