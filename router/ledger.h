#pragma once
// The entry half of the protocol: every microbatch this peer works on, who claims it (leases), in which window it is
// counted, and what the device has to do next. At most one live entry per microbatch. Nothing here knows tensors: the
// peer keeps them under the entry's serial.
//
// State machine without I/O, threads or clock. Thread: loop only. The device runs one job at a time: next_job() chooses
// it (undo, write, oldest backward, oldest forward), *_done() tells the outcome. Bounds: `credits` live entries (+
// `recovery_credits` for re-points and rejoins), kLeasesMax claims an entry; committed entries above the low-water mark
// are kept by name only.
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "common/time.h"
#include "events/delay.h"
#include "events/event_record.h"
#include "router/courier.h"
#include "router/windows.h"
#include "transport/links.h"
#include "transport/messages.h"

namespace shoal {

enum class EntryState : std::uint8_t {
  kArriving,   // header here, frames on their way (or a key frame asked for)
  kReady,      // forward may run
  kForward,    // forward runs
  kBelow,      // held: the courier waits for the next stage
  kQueued,     // gradient here (or last stage): backward waits for room or the device
  kBackward,   // backward runs
  kCounted,    // in a window, provisional; late: handed on and in none
  kUndoing,    // its last claim is gone; waits for the device
  kCommitted,  // final
};
std::string_view name_of(EntryState state);

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
  std::uint16_t stages = 1;
  std::size_t credits = 16;
  std::size_t recovery_credits = 4;
  Duration lease = 4s;            // L: an unrenewed claim falls after this
  std::uint64_t inner_batch = 1;  // targets of an inner window
  std::uint64_t delay_max = 0;    // inner steps that a gradient for such a window may be late; 0: any number
  bool drain = false;             // a step's forwards wait until the step before is merged here
};

struct LedgerCounters {
  std::uint64_t accepted = 0, joined = 0, refused = 0, counted = 0, undone = 0, committed = 0, gone = 0, recomputed = 0,
                window_wait = 0, non_finite = 0, inexact_undo = 0, inner_steps = 0, expired = 0, forwards = 0,
                dropped = 0, key_frames = 0, late = 0;
};

class Ledger {
 public:
  static constexpr std::size_t kLeasesMax = 4;
  // Frames that were announced are waited for no longer than this since the holder's last ones were whole: four times
  // what its slowest took (those of a stage are all of one size), or was given for it in vain, at least a lease;
  // while none came, this.
  static constexpr Duration kArrivalUnknown = 20s, kArrivalMax = 120s;
  static constexpr int kArrivalFactor = 4;
  static constexpr std::uint32_t kLateMax = 8;

  struct LeaseIn {
    Session holder;
    TimePoint expires;
    TimePoint renewed;
    bool sent = false;       // the gradient went out for it
    bool link_lost = false;  // the connection to the holder is gone, and with it what was sent
  };
  // A peer passed on a COMMIT that names the entry. It is kept without a claim for that long, or until the trainer
  // decides.
  struct Hearsay {
    TimePoint until;                 // L after the trainer was heard behind the first question
    TimePoint ask_at;                // the trainer's own COMMIT is on its way, so it is not asked at once
    std::optional<TimePoint> asked;  // for the first time
    bool over = false;
  };
  // Of a holder: frames that it announced.
  struct Arrivals {
    Duration slowest{};      // from their header, or from when those before were whole
    TimePoint last{};        // were whole
    std::uint32_t late = 0;  // times that they did not come; each arrival takes one off
  };
  struct Entry {
    MicrobatchId microbatch;
    EntrySerial serial = 0;
    SampleId sample;
    std::uint32_t epoch = 0;
    ForwardKind kind = ForwardKind::kTrain;
    std::vector<Version> versions;  // as Forward.versions
    StepId step;
    EntryState state = EntryState::kArriving;
    std::map<Lease, LeaseIn> leases;
    std::vector<Session> above;
    std::optional<GradientHint> hint;
    TransferId transfer = 0;
    Session transfer_from;
    TimePoint awaited{};             // the frames, since then
    std::optional<Lease> key_lease;  // a key frame was asked for under this claim
    std::vector<EntryName> path;     // own entry first; set when the gradient is here
    double loss_sum = 0;
    std::uint64_t targets = 0;
    WeightStamp stamp = 0;
    std::uint64_t first_step = 0;  // steps made here when its forward was computed, whatever was computed again
    bool waited = false;           // for a window
    bool late = false;             // its gradient is too late for any: nothing of it is added here
    bool doomed = false;           // last claim gone while the device works on it
    std::string_view doom;
    std::optional<Hearsay> hearsay;
    bool merged = false;
    TimePoint orphan_told;
    std::uint32_t forward_us = 0, backward_us = 0;
  };

  // Opens, commits and closes the courier's hops as its entries go. REQUIRES: port and courier outlive it.
  Ledger(LedgerPort& port, Courier& courier, LedgerOptions options);

  // ---- messages ----
  // Answers at once (Busy, Have) or makes an entry that waits for its frames; returns its serial then.
  std::optional<EntrySerial> on_forward(const Session& from, const Forward& message, TransferId transfer,
                                        TimePoint now);
  void on_take(const Session& from, const Take& message, TimePoint now);
  void on_hint(const Session& from, const Hint& message, TimePoint now);
  void on_release(const Session& from, const Release& message);
  void on_renew(const Session& from, const Renew& message, TimePoint now);
  // What is decided, the trainer alone says. REQUIRES of on_commit, on_step, on_low and on_lows: the message came over
  // the link of the trainer's process, which its key proves.
  void on_commit(const Session& from, const Commit& message);
  void on_step(const Step& message);
  void on_low(const Low& low);
  void on_lows(const std::vector<Low>& lows);
  // A COMMIT that a peer passes on settles and closes nothing. What it names outlives its claims, once an entry, until
  // the trainer was asked.
  void on_hearsay(const Commit& message, TimePoint now);
  void heard_trainer(TimePoint now) { trainer_heard_ = now; }
  void on_link_down(const Session& session, TimePoint now);
  void on_session_over(const Session& session);
  // Expires leases, tells orphans' holders, asks the trainer. Call every few ten milliseconds.
  void tick(TimePoint now);

  // ---- tensors and gradients ----
  void inputs_arrived(EntrySerial serial);               // frames decoded
  void inputs_lost(EntrySerial serial, BusyReason why);  // they will not come or cannot be used
  // Forward found that the frames need a base that is not here. True: a key frame is asked for, the entry waits for
  // inputs again and the job is over. False: that was a key frame already, or nobody is left to ask: forward failed.
  bool base_missing(EntrySerial serial);
  void gradient_arrived(const MicrobatchId& microbatch, const Gradient& message);
  void gradient_rejected(EntrySerial serial);  // back to waiting for the next stage
  // ---- device ----
  // The next job, if any; REQUIRES: the last one is done. `shift_pending`: the executor has a shift to write when
  // nothing is open.
  std::optional<Job> next_job(bool shift_pending);
  // What the executor must hear of before anything writes the parameters; first of next_job().
  std::optional<Job> release_job();
  void forward_done(EntrySerial serial, const ForwardResult& result, TimePoint now);
  void backward_done(EntrySerial serial, bool ok, WeightStamp stamp, bool recomputed, std::uint32_t took_us);
  void undo_done(EntrySerial serial, bool exact);
  void step_done(WindowSlot slot, WeightStamp stamp);
  void wrote(WeightStamp stamp) { stamp_ = stamp; }  // a flip or shift

  // ---- rounds ----
  // Closes open inner windows (end of run, leaving).
  void flush();
  // How late the gradients of a window are, weighed by their targets, were its step made now.
  DelayHistogram delays(WindowSlot slot) const;
  bool quiet() const;                  // nothing live and no window: all work is settled and stepped
  bool step_ready(StepId step) const;  // STEP came, winners settled, the rest undone
  const Windows::Window* step_window(StepId step) const { return windows_.step_window(step); }
  const Windows::Window* window(WindowSlot slot) const { return windows_.at(slot); }
  bool windows_empty() const { return windows_.empty(); }
  std::size_t unsettled_at_other() const { return windows_.unsettled_at_other(stamp_); }
  std::vector<EntrySerial> stepped() const {
    return {stepped_.begin(), stepped_.end()};
  }                                                               // in the parameters, in no committed round
  std::uint64_t stepped_targets() const { return stepped_sum_; }  // of stepped(): every beat says it
  // A committed round names these entries of ours.
  void secure(const std::vector<EntrySerial>& serials);
  void pop_step(StepId step);  // its round is committed
  // The state that is served holds all steps up to it.
  void start_behind(StepId step) { step_done_ = step; }

  void note_run(std::uint64_t targets) { windows_.note_run(targets); }  // committed by the run
  std::uint64_t run_targets() const { return windows_.run_targets(); }
  // The time of what comes next, for Window::settle_wait_ms alone.
  void note_time(TimePoint now) { windows_.note_time(now_ = now); }

  // ---- look ----
  void set_leaving(bool leaving) { leaving_ = leaving; }
  void set_serving(bool serving) { serving_ = serving; }
  bool leaving() const { return leaving_; }
  bool serving() const { return serving_; }
  const Entry* find(EntrySerial serial) const;
  const Entry* find_live(const MicrobatchId& microbatch) const;
  std::map<Session, std::vector<ProgressItem>> progress() const;  // for every holder: where its entries stand
  std::size_t live() const;
  std::size_t queued() const;      // what the device works on or could start now
  std::uint32_t queue_ms() const;  // what waits for the device, in its recent time a job
  std::uint64_t low_of(std::uint64_t trainer) const;
  const LedgerCounters& counters() const { return counters_; }
  const std::map<EntrySerial, Entry>& entries() const { return entries_; }

 private:
  Entry* entry(EntrySerial serial);
  Entry* live_entry(const MicrobatchId& microbatch);
  EntryName entry_name_of(const Entry& e) const { return {options_.self, e.serial}; }
  void busy(const Session& to, const Lease& lease, BusyReason why, TransferId transfer);
  void add_lease(Entry& e, const Session& from, const Lease& lease, const std::vector<Session>& above, TimePoint now);
  void drop_lease(const Lease& lease, std::string_view cause);
  void ask_about_hearsay(TimePoint now);
  bool key_frame_comes(const Forward& message, const Session& from) const;
  bool ask_key_frame(Entry& e);
  void open_hop(const Entry& e, const ForwardResult& result, TimePoint now);
  void give_gradient(Entry& e, const Lease& lease);
  void give_gradient_to_all(Entry& e);
  void end_uncommitted(Entry& e, std::string_view cause);  // undo or drop
  void erase(EntrySerial serial);
  void note_job(std::uint32_t took_us);
  void settle(Entry& e);
  void commit_item(const CommitItem& item, CommitAck& ack);
  void close_microbatch(const MicrobatchId& microbatch);
  bool closed(const Forward& message) const;  // decided elsewhere, or of a step that is
  // By when the window that it would go into makes its step. Those of a global step are waited for.
  bool too_late(const Entry& e) const {
    return options_.delay_max > 0 && e.step.value == 0 &&
           steps_made_ + windows_.steps_due() - e.first_step > options_.delay_max;
  }
  void answer_live(Entry& e, const Session& from, const Forward& message, TransferId transfer, TimePoint now);
  std::optional<BusyReason> refusal(const Session& from, const Forward& message) const;
  // How many entries of a holder may wait for frames: half of the credits where others claim too, and less of one whose
  // frames did not come.
  std::size_t arriving_allowed(const Session& from) const;
  std::size_t arriving_of(const Session& from) const;
  Duration arrival_patience(const Arrivals& arrivals) const;
  void note_arrival(const Entry& e);
  void give_up_arrivals(TimePoint now);
  HopPhase phase_of(const Entry& e) const;
  // Mode drain: the trainer saw the step before merged everywhere, but that news may reach us behind the forward.
  bool too_early(const Entry& e) const {
    return options_.drain && e.kind == ForwardKind::kTrain && e.step.value > step_done_.value + 1;
  }
  bool is_last() const { return options_.stage.value + 1 == options_.stages; }

  LedgerPort& port_;
  Courier& courier_;
  LedgerOptions options_;
  EntrySerial next_serial_ = 1;
  std::map<EntrySerial, Entry> entries_;      // serial order = age
  std::set<EntrySerial> active_;              // of these, not committed: a long round keeps many that are
  std::map<MicrobatchId, EntrySerial> live_;  // also committed ones, until low passes
  std::unordered_map<Lease, EntrySerial> by_lease_;
  std::map<Session, Arrivals> arrivals_;  // of members that claim here
  TimePoint now_{}, ticked_{};            // the newest time that was said; the last tick
  std::set<MicrobatchId> closed_;
  std::map<std::uint64_t, std::uint64_t> low_;  // by trainer
  std::set<StepId> steps_;                      // announced, not yet merged
  StepId step_done_;                            // the newest merged one; they are merged in order
  std::set<EntrySerial> stepped_;
  std::map<EntrySerial, std::uint64_t> stepped_targets_;
  std::uint64_t stepped_sum_ = 0;                     // of stepped_targets_
  std::vector<EntrySerial> settle_next_, drop_next_;  // for the next kRelease job
  Windows windows_;
  WeightStamp stamp_ = 0;
  std::uint64_t steps_made_ = 0;  // inner steps, and steps that rounds made; a shift is none
  double job_us_ = 0;             // EMA of a device job
  TimePoint trainer_heard_{};     // the last message that came from the trainer itself
  bool leaving_ = false, serving_ = false;
  LedgerCounters counters_;
};

}  // namespace shoal
