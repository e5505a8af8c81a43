#pragma once
// A session that serves a stage: what it is given and whom it tells, and what its arena holds. Thread: loop only,
// unless said otherwise.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/event_loop.h"
#include "common/work_queue.h"
#include "events/event_log.h"
#include "router/courier.h"
#include "router/ledger.h"
#include "router/windows.h"
#include "runtime/config/config.h"
#include "runtime/edge/activation_frames.h"
#include "stages/executor.h"
#include "stages/stage_spec.h"
#include "sync/outer_rule.h"
#include "transport/links.h"

namespace shoal {

class StagePeerOwner {
 public:
  virtual ~StagePeerOwner() = default;
  // This session cannot go on: its state differs from the stage's, or it missed what it cannot catch up with.
  virtual void on_session_lost(const std::string& why) = 0;
  virtual void on_version(Version version) = 0;
  virtual void on_inner_step() = 0;
  // The memory of its device does not hold what one microbatch takes: it is to leave.
  virtual void on_out_of_memory(const std::string& why) = 0;
  // A round was committed without this session, which can follow: fetch this state or a newer one and give it to
  // catch_up(). Called again when it is not the newest any more. Until then the session goes on with its old anchor
  // and takes part in no round.
  virtual void on_behind(Version version, const Digest& digest) = 0;
};

// REQUIRES: what it refers to outlives the session.
struct StageSession {
  std::shared_ptr<const RunConfig> config;  // shared with device jobs, which may outlive the session
  StageSpec spec;
  Session self;
  PeerId authority;
  std::size_t credits = 16;
  TagOf tag_of{};
  EventLoop& loop;
  Links& links;
  WorkQueue& device;
  WorkQueue& aside;  // for what goes through large memory: waits for no computing
  EventLog& events;
  StagePeerOwner& owner;
  std::shared_ptr<StageExecutor> executor;
  std::optional<DeltaCodecs> deltas{};  // of both edges, whatever RUN.toml names; for tests
};

// What its parts are made with.
CourierOptions courier_options(const StageSession& session);
EntryCredits entry_credits(const StageSession& session);
LedgerOptions ledger_options(const StageSession& session);
WindowsOptions windows_options(const RunConfig& config);

// What the executor's arena holds, as the loop knows it between two jobs.
struct ArenaState {
  Version version;
  RuleId rule{};                      // of the last commit: whose roles belong to the anchor
  bool serving = false;               // forwards are accepted
  bool shift_pending = false;         // the anchor moved; the parameters follow with their next write
  StepId step_done;                   // allreduce, warm steps: the newest that a round made
  std::uint64_t adam_step = 0;        // inner steps that the moments have seen
  std::optional<RoundOpen> prepared;  // a candidate that was reported and neither committed nor abandoned yet
};

}  // namespace shoal
