#pragma once
// One session serving one stage: a courier to the next stage, the ledger of its entries, their tensors, a device, and a
// part in the stage's rounds. It hands messages and frames to the part that they are for. It ends with its session:
// whoever owns it (runtime/peer/peer.h) makes a new one after a fence.
//
// Thread: loop only; the executor is touched inside device jobs. Borrows everything in Environment; the executor is
// shared with jobs under way.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/log_throttle.h"
#include "runtime/stage_peer/device_scheduler.h"
#include "runtime/stage_peer/entry_jobs.h"
#include "runtime/stage_peer/meters.h"
#include "runtime/stage_peer/round_desk.h"
#include "runtime/stage_peer/stage_parts.h"
#include "runtime/stage_peer/tensor_store.h"

namespace shoal {

// Figures for beats and for people.
struct StagePeerStatus {
  LedgerCounters ledger;
  CourierCounters courier;
  std::uint64_t settled_targets = 0, inner_steps = 0, run_targets = 0;
  double run_loss = 0;
  std::uint64_t graphs_dropped = 0;          // by inner steps: their forwards run again
  double delay = 0;                          // as in MeterReadings
  std::optional<TimePoint> last_accepted{};  // a microbatch
  bool device_busy = false;
  std::uint32_t job_ms = 0, longest_ms = 0;  // as in Beat
  Duration longest_job{};                    // of any kind, in this session
  std::size_t live = 0, queued = 0, parked = 0;
  std::uint32_t queue_ms = 0;
  bool stranded = false;                              // nobody of the next stage answers
  double rate = 0;                                    // targets a second over the last seconds
  std::optional<double> forward_us{}, backward_us{};  // as in MeterReadings
  BaseCounters bases{};
  std::uint64_t fp32_bytes = 0, payload_bytes = 0;  // of activations and gradients that were encoded; of their frames
  Version version;
};

class StagePeer final : private HopOwner, private LedgerPort, private JobSource {
 public:
  using Owner = StagePeerOwner;

  StagePeer(StagePeerOptions options, StagePeerEnvironment environment, Owner& owner);
  ~StagePeer() override;

  // The arena holds the stage's state of `version`, which `rule` made, behind the step `done`: from now on forwards are
  // accepted.
  void serve(Version version, RuleId rule, StepId done);
  bool serving() const { return arena_.serving; }
  // The image (root and digest checked) of a committed version, asked for by on_behind: shifts what is here onto it.
  // False: not wanted any more, and on_behind is called again if another one is.
  bool catch_up(Bytes image) { return !stopped() && rounds_.catch_up(std::move(image)); }

  // ---- from the transport ----
  void on_message(const Remote& from, Message& message, TransferId transfer, std::uint64_t frame_bytes);
  void on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames);
  void on_link_up(const Remote& remote);
  void on_link_down(const Remote& remote);
  void on_members(const MemberList& list);
  // What the run has committed, as any message says: the schedule of the learning rate follows it.
  void note_run(std::uint64_t targets, double loss);

  // ---- leaving and end ----
  void leave();                     // no new forwards; open windows are closed when they are settled
  bool quiet() const;               // nothing live, nothing open
  std::string waiting_for() const;  // for people
  void stop();                      // fenced or gone: every timer and callback of this session ends
  bool stopped() const { return device_.stopped(); }

  StagePeerStatus status() const;
  const Ledger& ledger() const { return ledger_; }
  const Windows& windows() const { return windows_; }
  const Courier& courier() const { return courier_; }
  const Roster& roster() const { return neighbours_.roster(); }
  Version version() const { return arena_.version; }
  // A candidate that was reported and neither committed nor abandoned yet: the authority may commit it without us.
  const std::optional<RoundOpen>& prepared() const { return arena_.prepared; }
  RuleId state_rule() const { return arena_.rule; }  // of the last commit: whose roles belong to the anchor
  // Runs on the device between jobs; for state transfer and evaluation of the arena.
  void run_on_device(WorkKind task, std::function<void(StageExecutor&)> job, std::function<void()> done);

 private:
  // HopOwner
  std::vector<Bytes> frames_of(const Session& to, const Forward& message, bool key) override;
  void on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) override;
  void on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) override;
  void on_parked(const MicrobatchId& microbatch, StageId stage, bool parked) override;
  // LedgerPort (write serves both)
  void write(const EventRecord& event) override { env_.events.write(event); }
  void send(const Session& to, Message message) override { neighbours_.send(to, std::move(message)); }
  bool ask_trainer(Waiting message) override;
  bool send_gradient(const Session& to, Gradient message, EntrySerial serial) override;
  void refuse_frames(const Session& from, TransferId transfer) override;
  void discard(EntrySerial serial) override;
  // JobSource
  void start_next() override;

  StageParts parts();
  bool refuses_frames(const Remote& from, const Message& message, TransferId transfer, std::uint64_t frame_bytes);
  void on_forward(const Remote& from, const Forward& message, TransferId transfer);
  // Why it cannot be an entry here whatever the ledger says; none: it can.
  std::optional<BusyReason> unfit(const Forward& message, TransferId transfer) const;
  void on_input(EntrySerial serial, Result<std::vector<Bytes>>& frames);
  std::uint32_t job_ms() const;  // the device's present job runs for so long; 0: none
  void schedule_tick();
  void tick();
  void note_stranded();
  // Where the holders' claims stand: what changed, or all of it.
  void send_progress(bool all);

  const StagePeerOptions options_;
  const StagePeerEnvironment env_;
  Owner& owner_;
  const std::uint64_t part_bytes_max_;  // of a round: the whole arena
  Neighbours neighbours_;
  Courier courier_;
  Windows windows_;
  Ledger ledger_;
  TensorStore tensors_;
  BaseBook bases_;
  Meters meters_;
  ArenaState arena_;
  DeviceScheduler device_;
  EntryJobs jobs_;
  RoundDesk rounds_;
  std::unordered_map<Lease, HopPhase> told_;  // phases our holders know
  TimerId tick_timer_ = 0;
  TimePoint next_beat_{};
  double run_loss_ = 0;
  bool stranded_ = false;  // and that was said
  LogThrottle said_;
};

}  // namespace shoal
