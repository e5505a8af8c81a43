#pragma once
// What the device does for windows, between passes: their inner steps, and the shift behind an anchor that moved. Both
// write the parameters.
//
// Thread: loop only.   Borrows: what it is made with.   Errors: an inner step that fails ends the session.
#include "router/ledger.h"
#include "runtime/stage_peer/device_scheduler.h"
#include "runtime/stage_peer/meters.h"
#include "runtime/stage_peer/stage_session.h"

namespace shoal {

class WindowJobs {
 public:
  WindowJobs(const StageSession& session, Windows& windows, DeviceScheduler& device, ArenaState& arena, Meters& meters)
      : session_(session), windows_(windows), device_(device), arena_(arena), meters_(meters) {}

  // REQUIRES of both: the device is idle.
  void inner_step(const Job& job);
  // Lets the parameters follow. REQUIRES: nothing is unsettled at the other buffer.
  void apply_shift();
  // A round made this step: what of it was ours, into the meters and the line of its anchor.
  void note_step(StepId step, EventRecord& anchor);

 private:
  const StageSession& session_;
  Windows& windows_;
  DeviceScheduler& device_;
  ArenaState& arena_;
  Meters& meters_;
};

}  // namespace shoal
