#pragma once
// One session serving one stage: its entries, a device, and a part in the stage's rounds. It hands each message and
// each frame to the part that it is for: a microbatch comes by five times, with its header, its frames, the header and
// the frames of its gradient, and its COMMIT. It ends with its session: whoever owns it (runtime/peer/peer.h) makes a
// new one after a fence.
//
// Thread: loop only; the executor is touched inside device jobs. Borrows what its StageSession refers to; the executor
// is shared with jobs under way.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/log_throttle.h"
#include "runtime/stage_peer/device_scheduler.h"
#include "runtime/stage_peer/entry_desk.h"
#include "runtime/stage_peer/entry_jobs.h"
#include "runtime/stage_peer/meters.h"
#include "runtime/stage_peer/round_desk.h"
#include "runtime/stage_peer/stage_edges.h"
#include "runtime/stage_peer/stage_session.h"
#include "runtime/stage_peer/window_jobs.h"

namespace shoal {

// Where it stands now, for beats and for what waits for it.
struct StagePeerStatus {
  std::uint64_t settled_targets = 0;
  bool device_busy = false;
  std::uint32_t job_ms = 0, longest_ms = 0;  // as in Beat
  Duration longest_job{};                    // of any kind, in this session
  std::size_t live = 0, queued = 0, parked = 0;
  bool stranded = false;  // nobody of the next stage answers
  BaseCounters bases{};
  std::uint64_t round_bytes = 0;  // pieces and sums that were sent
  Duration rounds_time{};         // that rounds held the device
  Version version;
};

class StagePeer final {
 public:
  explicit StagePeer(StageSession session);
  ~StagePeer();

  // The arena holds the stage's state of `version`, which `rule` made, behind the step `done`: from now on forwards are
  // accepted.
  void serve(Version version, RuleId rule, StepId done);
  bool serving() const { return arena_.serving; }
  // The image (root and digest checked) of a committed version, asked for by on_behind: shifts what is here onto it.
  // False: not wanted any more, and on_behind is called again if another one is.
  bool catch_up(Bytes image) { return !stopped() && rounds_.catch_up(std::move(image)); }

  // ---- from the transport ----
  void on_message(const Remote& from, const Message& message, TransferId transfer, std::uint64_t frame_bytes);
  void on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames);
  void on_link_up(const Remote& remote);
  void on_link_down(const Remote& remote);
  // Returns the sessions that are over by this list.
  std::vector<Session> on_members(const MemberList& list);
  // What the run has committed, as any message says: the schedule of the learning rate follows it.
  void note_run(std::uint64_t targets) { windows_.note_run(targets); }

  // ---- leaving and end ----
  void leave();  // no new forwards; open windows are closed when they are settled
  bool in_round() const { return rounds_.active(); }
  bool quiet() const;               // nothing live, nothing open
  std::string waiting_for() const;  // for people
  void stop();                      // fenced or gone: every timer and callback of this session ends
  bool stopped() const { return device_.stopped(); }

  StagePeerStatus status() const;
  PeerFigures figures() const;               // of the session
  std::vector<RefusedMicrobatch> refused();  // as in Beat
  const Neighbours& neighbours() const { return neighbours_; }
  bool reaches(const PeerId& peer) { return neighbours_.reach(peer); }
  const Courier& courier() const { return courier_; }
  const Ledger& ledger() const { return ledger_; }
  const Windows& windows() const { return windows_; }
  Version version() const { return arena_.version; }
  // A candidate that was reported and neither committed nor abandoned yet: the authority may commit it without us.
  const std::optional<RoundOpen>& prepared() const { return arena_.prepared; }
  RuleId state_rule() const { return arena_.rule; }  // of the last commit: whose roles belong to the anchor
  // Runs on the device between jobs; for state transfer and evaluation of the arena.
  void run_on_device(WorkKind task, std::function<void(StageExecutor&)> job, std::function<void()> done);
  Duration last_job() const { return device_.last(); }  // inside a job's `done`: how long it ran

 private:
  // Why a message is not heard, whatever it says; none: it is.
  std::optional<BusyReason> refusal(const Remote& from, const Message& message, TransferId transfer,
                                    std::uint64_t frame_bytes);
  void refuse(const Remote& from, const Message& message, TransferId transfer, BusyReason why);
  void take(const Remote& from, const Message& message, TransferId transfer);
  std::uint32_t job_ms() const;  // the device's present job runs for so long; 0: none
  void schedule_tick();
  void tick();
  void note_stranded();
  std::optional<Job> next_job();  // of the ledger

  const StageSession session_;
  const std::uint64_t part_bytes_max_;  // of a round: the whole arena
  Meters meters_;
  ArenaState arena_;
  Neighbours neighbours_;
  Windows windows_;
  EntryCredits credits_;
  KeptTensors tensors_;
  BaseBook bases_;
  StageEdges edges_;
  EntryDesk entries_;
  Courier courier_;
  Ledger ledger_;
  DeviceScheduler device_;
  WindowJobs writes_;
  EntryJobs jobs_;
  RoundDesk rounds_;
  TimerId tick_timer_ = 0;
  TimePoint next_beat_{};
  bool stranded_ = false;  // and that was said
  LogThrottle said_;
};

}  // namespace shoal
