#pragma once
// What a peer knows of its run, from session to session: its manifest, which part of the model is this peer's and what
// that needs here, how the run stands. Value.   Thread: loop only.
#include <functional>
#include <memory>
#include <optional>

#include "metrics/peer_figures.h"
#include "runtime/config/config.h"
#include "runtime/peer/peer_options.h"
#include "runtime/peer/traffic.h"
#include "runtime/plan/memory_fit.h"
#include "stages/stage_spec.h"
#include "transport/messages.h"

namespace shoal {

struct KnownRun {
  std::shared_ptr<const RunConfig> config;  // null before the manifest is here
  std::shared_ptr<const RunConfig> served;  // the same with [compute] recompute as this peer chose; from then on
  std::size_t credits = 0;                  // from when the stage is known
  std::optional<StageSpec> spec;            // of this session, before that of the one before
  BeatAck status;                           // how it stands, as last heard
  std::optional<End> end;                   // heard, with the run's signature: passed on to neighbours

  // REQUIRES: config. None: the split has no such stage.
  std::optional<StageSpec> spec_of(StageId stage) const;
  // How many microbatches at a time this peer would take there. ERRORS: kTooLarge. REQUIRES: config.
  Result<Room> room_for_stage(const StageSpec& there, const PeerOptions& options,
                              std::optional<std::uint64_t> memory_free) const;
  // What `spec` is served with from now on.
  void serve_in(const Room& room);
  // What the process is and sent, and what it needs for the stage and its microbatches (stage_memory.h).
  void add_to(PeerFigures& figures, const PeerOptions& options, const Traffic& all) const;
};

}  // namespace shoal
