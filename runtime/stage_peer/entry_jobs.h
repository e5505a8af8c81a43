#pragma once
// What the device does for the ledger: forwards, backwards and undos of entries here, writes of windows in WindowJobs.
// A job takes what it needs along; what it found goes back to the ledger on the loop.
//
// Thread: loop only.   Borrows: what it is made with.   Errors: a microbatch that fails is the ledger's (Busy to
// its holders); an undo that fails ends the session.
#include <optional>
#include <string_view>

#include "common/log_throttle.h"
#include "router/ledger.h"
#include "runtime/stage_peer/device_scheduler.h"
#include "runtime/stage_peer/entry_tensors.h"
#include "runtime/stage_peer/meters.h"
#include "runtime/stage_peer/stage_edges.h"
#include "runtime/stage_peer/stage_session.h"
#include "runtime/stage_peer/window_jobs.h"

namespace shoal {

// Which run files would need less of a peer that serves `spec`: the end of a HINT.
std::string smaller_run_text(const RunConfig& config, const StageSpec& spec);

class EntryJobs {
 public:
  EntryJobs(const StageSession& session, Ledger& ledger, Courier& courier, EntryCredits& credits, KeptTensors& tensors,
            StageEdges& edges, DeviceScheduler& device, Meters& meters, WindowJobs& writes)
      : session_(session),
        ledger_(ledger),
        courier_(courier),
        credits_(credits),
        tensors_(tensors),
        edges_(edges),
        device_(device),
        meters_(meters),
        writes_(writes) {}

  // False: there is none. REQUIRES: the device is idle.
  bool start(const std::optional<Job>& job);

 private:
  void forward(EntrySerial serial);
  void backward(const Job& job);
  void undo(const Job& job);
  void release(const Job& job);
  // A pass failed so: before the ledger hears of it.
  void note_memory(const Error& error);
  void note_refused(EntrySerial serial, const Error& error, RefusalCause not_finite, std::string_view role);
  void warn(const char* what, const MicrobatchId& microbatch, const std::string& how);

  const StageSession& session_;
  Ledger& ledger_;
  Courier& courier_;
  EntryCredits& credits_;
  KeptTensors& tensors_;
  StageEdges& edges_;
  DeviceScheduler& device_;
  Meters& meters_;
  WindowJobs& writes_;
  LogThrottle said_;
};

}  // namespace shoal
