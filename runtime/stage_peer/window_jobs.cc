#include "runtime/stage_peer/window_jobs.h"

namespace shoal {

void WindowJobs::apply_shift() {
  struct Outcome {
    WeightStamp stamp = 0;
    bool shift_pending = false;
  };
  auto outcome = std::make_shared<Outcome>();
  device_.run(
      WorkKind::kShift,
      [outcome](StageExecutor& executor) {
        outcome->stamp = executor.apply_shift().stamp;
        outcome->shift_pending = executor.shift_pending();
      },
      [this, outcome] {
        arena_.shift_pending = outcome->shift_pending;
        windows_.wrote(outcome->stamp);
      });
}

void WindowJobs::inner_step(const Job& job) {
  struct Outcome {
    Result<InnerStepResult> result = InnerStepResult{};
    bool shift_pending = false;
    CountTag tag = 0;
  };
  auto outcome = std::make_shared<Outcome>();
  const RunConfig& config = *session_.config;
  const InnerStep step = config.inner_step(arena_.adam_step + 1, job.targets, job.run_targets, config.gradients_late());
  device_.run(
      WorkKind::kWrite,
      [outcome, slot = job.slot, step](StageExecutor& executor) {
        outcome->result = executor.inner_step(slot, step);
        outcome->shift_pending = executor.shift_pending();
        outcome->tag = executor.arena().tag(ArenaRole::kCurrent);
      },
      [this, outcome, slot = job.slot, targets = job.targets] {
        if (!outcome->result.ok())
          return session_.owner.on_session_lost("an inner step failed: " + outcome->result.error().message);
        ++arena_.adam_step;
        const DelayHistogram delays = windows_.delays(slot);
        meters_.stepped(delays);
        meters_.dropped_graphs(outcome->result->graphs_dropped);
        arena_.shift_pending = outcome->shift_pending;
        std::vector<EntryName> entries;
        const Windows::Window& window = *windows_.at(slot);
        for (const auto& [serial, entry] : window.entries) entries.push_back({session_.self, serial});
        EventRecord step{.event = EventKind::kStepped,
                         .window = slot,
                         .tag = outcome->tag,
                         .entries = std::move(entries),
                         .targets = targets};
        set_delays(step, delays, window.settle_wait_ms());
        session_.events.write(step);
        windows_.note_step(slot, outcome->result->stamp);
        session_.owner.on_inner_step();
      });
}

void WindowJobs::note_step(StepId step, EventRecord& anchor) {
  const Windows::Window* window = windows_.step_window(step);
  const DelayHistogram delays = window == nullptr ? DelayHistogram() : windows_.delays(window->slot);
  meters_.stepped(delays);
  if (window != nullptr) set_delays(anchor, delays, window->settle_wait_ms());
}

}  // namespace shoal
