#pragma once
// The entry half of the protocol: every microbatch this peer works on, who claims it (leases), and what the device has
// to do next. At most one live entry per microbatch. Nothing here knows tensors: the peer keeps them under the entry's
// serial.
//
// State machine without I/O, threads or clock. Thread: loop only. The device runs one job at a time: next_job() chooses
// it (undo, write, oldest backward, oldest forward), *_done() tells the outcome. Bounds: as many live entries as there
// are credits (and some for re-points and rejoins), kLeasesMax claims an entry; committed entries above the low-water
// mark are kept by name only.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "events/event_record.h"
#include "router/arrivals.h"
#include "router/courier.h"
#include "router/entry.h"
#include "router/entry_credits.h"
#include "router/entry_table.h"
#include "router/hearsay.h"
#include "router/windows.h"
#include "transport/links.h"
#include "transport/messages.h"

namespace shoal {

enum class JobKind : std::uint8_t { kForward, kEvaluate, kBackward, kUndo, kInnerStep, kApplyShift, kRelease };

struct Job {
  JobKind kind = JobKind::kForward;
  EntrySerial serial = 0;                         // forward, evaluate, backward, undo
  WindowSlot slot = WindowSlot::kA;               // backward, undo, inner step
  std::uint64_t targets = 0;                      // inner step
  std::vector<EntrySerial> settled{}, dropped{};  // release: executor.settle / executor.drop
  bool empties = false;  // undo: the window's last entry goes, clear what rounding left (executor.clear_window)
  bool late = false;     // backward: for what it hands on alone, into no window
  std::uint64_t run_targets = 0;  // inner step: the run's committed targets when the window closed
};

// What a forward brought. Not ok: nothing else of it counts.
struct ForwardResult {
  bool ok = false;
  double loss_sum = 0;  // last stage
  std::uint64_t targets = 0;
  std::uint64_t frame_bytes = 0;  // of the activation for the next stage, about
  KnownBase base{};
  std::uint32_t took_us = 0;
};

class LedgerPort {
 public:
  virtual ~LedgerPort() = default;
  virtual void send(const Session& to, Message message) = 0;
  // To the trainer's process of now: the session that an entry came from may be over. False: there is no link to it.
  virtual bool ask_trainer(Waiting message) = 0;
  // With the encoded gradient of the entry. False: there is no link to send it on; it is asked for again by a renewal.
  virtual bool send_gradient(const Session& to, Gradient message, EntrySerial serial) = 0;
  virtual void refuse_frames(const Session& from, TransferId transfer) = 0;
  // Nothing of the entry is needed any more, or it is committed: free its tensors (device side: a kRelease job
  // follows).
  virtual void discard(EntrySerial serial) = 0;
  virtual void write(const EventRecord& event) = 0;  // of an entry, into the process's EventLog
};

struct LedgerOptions {
  Session self;
  StageId stage;
  std::optional<StageId> next;  // none: the loss is made here
  Duration lease = 4s;          // L: an unrenewed claim falls after this
  TagOf tag_of{};               // none: its entries have tag 0
};

struct LedgerCounters {
  std::uint64_t accepted = 0, counted = 0, undone = 0, recomputed = 0;  // entries
};

class Ledger {
 public:
  static constexpr std::size_t kLeasesMax = 4;

  // Opens, commits and closes the courier's hops as its entries go, and puts counted ones into windows. REQUIRES: port,
  // courier, windows and credits outlive it.
  Ledger(LedgerPort& port, Courier& courier, Windows& windows, const EntryCredits& credits, LedgerOptions options);

  // ---- messages ----
  // Answers at once (Busy, Have) or makes an entry that waits for its frames; returns its serial then.
  std::optional<EntrySerial> on_forward(const Session& from, const Forward& message, TransferId transfer,
                                        TimePoint now);
  void on_take(const Session& from, const Take& message, TimePoint now);
  void on_hint(const Session& from, const Hint& message, TimePoint now);
  void on_release(const Session& from, const Release& message);
  void on_renew(const Session& from, const Renew& message, TimePoint now);
  // What is decided, the trainer alone says. REQUIRES of on_commit, on_step and on_lows: the message came over the link
  // of the trainer's process, which its key proves.
  void on_commit(const Session& from, const Commit& message);
  void on_step(const Step& message);
  void on_lows(const std::vector<Low>& lows);
  // A COMMIT that a peer passes on settles and closes nothing. What it names outlives its claims, once an entry, until
  // the trainer was asked.
  void on_hearsay(const Commit& message, TimePoint now);
  void heard_trainer(TimePoint now) { hearsay_.heard_trainer(now); }
  void on_link_down(const Session& session, TimePoint now);
  void on_session_over(const Session& session);
  // Expires leases, tells orphans' holders, asks the trainer. Call every few ten milliseconds.
  void tick(TimePoint now);

  // ---- tensors and gradients ----
  // The entry that waits for these frames; none: nobody does any more.
  std::optional<EntrySerial> awaits(const Session& holder, TransferId transfer) const {
    return arrivals_.serial_of(holder, transfer);
  }
  void inputs_arrived(EntrySerial serial, TimePoint now);  // frames whole
  void inputs_lost(EntrySerial serial, BusyReason why);    // they will not come or cannot be used
  // Forward found that the frames need a base that is not here. True: a key frame is asked for, the entry waits for
  // inputs again and the job is over. False: that was a key frame already, or nobody is left to ask: forward failed.
  bool base_missing(EntrySerial serial);
  void gradient_arrived(const MicrobatchId& microbatch, const Gradient& message);
  void gradient_rejected(EntrySerial serial);  // back to waiting for the next stage

  // ---- device ----
  // The next job, if any; REQUIRES: the last one is done. `shift_pending`: the executor has a shift to write when
  // nothing is open. `may_step`: no round writes the parameters.
  std::optional<Job> next_job(bool shift_pending, bool may_step = true);
  // What the executor must hear of before anything writes the parameters; first of next_job().
  std::optional<Job> release_job();
  void forward_done(EntrySerial serial, const ForwardResult& result, TimePoint now);
  void backward_done(EntrySerial serial, bool ok, WeightStamp stamp, bool recomputed, std::uint32_t took_us);
  void undo_done(EntrySerial serial, bool exact);

  // A committed round names these entries of ours.
  void secure(const std::vector<EntrySerial>& serials);
  void set_leaving(bool leaving) { leaving_ = leaving; }  // no new entries; what is here goes on

  // ---- look ----
  bool leaving() const { return leaving_; }
  bool quiet() const;                  // nothing live and no window: all work is settled and stepped
  bool step_ready(StepId step) const;  // STEP came, winners settled, the rest undone
  std::map<Session, std::vector<ProgressItem>> progress() const;  // for every holder: where its entries stand
  std::size_t queued() const;                                     // what the device works on or could start now
  std::uint32_t queue_ms() const;  // what waits for the device, in its recent times of forward and backward
  std::uint64_t low_of(std::uint64_t trainer) const;
  const Hearsay& hearsay() const { return hearsay_; }
  const LedgerCounters& counters() const { return counters_; }
  const EntryTable& entries() const { return entries_; }

 private:
  // The one place where an entry's state changes. Whatever is kept of entries in a state is kept in step with it; in
  // kGone the entry is no more. REQUIRES: may_follow(e.state, to).
  void move(Entry& e, EntryState to);
  void say(EventKind kind, const Entry& e, std::string_view cause = {});

  void busy(const Session& to, const Lease& lease, BusyReason why, TransferId transfer);
  void add_lease(Entry& e, const Session& from, const Lease& lease, const std::vector<Session>& above, TimePoint now);
  void drop_lease(const Lease& lease, std::string_view cause);
  void refuse_frames(const Entry& e);  // of what is on its way
  bool ask_key_frame(Entry& e);
  void give_gradient(Entry& e, const Lease& lease);
  void give_gradient_to_all(Entry& e);
  // Nobody may claim it any more: it is undone or dropped, behind what the device does with it now.
  void end(Entry& e, std::string_view cause, bool device_done = false);
  void fail(Entry& e, BusyReason why, std::string_view cause);  // as end(); the device is done, its holders hear why
  void settle(Entry& e);
  void commit_item(const CommitItem& item, CommitAck& ack);
  void close_microbatch(const MicrobatchId& microbatch);
  bool closed(const Forward& message) const;  // decided elsewhere, or of a step that is
  void answer_live(Entry& e, const Session& from, const Forward& message, TransferId transfer, TimePoint now);
  std::optional<BusyReason> refusal(const Session& from, const Forward& message) const;

  LedgerPort& port_;
  Courier& courier_;
  Windows& windows_;
  const LedgerOptions options_;
  const EntryCredits& credits_;
  EntrySerial next_serial_ = 1;
  EntryTable entries_;
  Arrivals arrivals_;
  Hearsay hearsay_;
  std::set<MicrobatchId> closed_;
  std::map<std::uint64_t, std::uint64_t> low_;        // by trainer
  std::vector<EntrySerial> settle_next_, drop_next_;  // for the next kRelease job
  double forward_us_ = 0, backward_us_ = 0;           // EMA of a device job
  bool leaving_ = false;
  LedgerCounters counters_;
};

}  // namespace shoal
