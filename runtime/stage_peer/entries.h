#pragma once
// The microbatches of one session: their entries (Ledger), counted ones (Windows), encoded tensors, the courier that
// carries them on to the next stage, and the bases that their frames are differences to. It answers for what ledger and
// courier ask of the process, so that an entry's way through the stage stays here.
//
// Thread: loop only.   Borrows: what it is made with.   Bounds: the ledger's.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/log_throttle.h"
#include "events/event_log.h"
#include "router/courier.h"
#include "router/ledger.h"
#include "runtime/edge/base_book.h"
#include "runtime/stage_peer/meters.h"
#include "runtime/stage_peer/stage_session.h"

namespace shoal {

// The encoded tensors of one entry. They are shared with the one device job that works on it, and are written by that
// job or by the loop, never by both at a time.
struct EntryTensors {
  MicrobatchId microbatch;
  std::vector<Bytes> input;   // encoded: tokens, then the activation (not at stage 0)
  OutgoingActivation output;  // encoded, for the next stage
  // With a codec of differences: which branches were sent the delta, and what both ends have when the input counted.
  std::map<Lease, bool> sent_deltas{};
  Base after{};
  Bytes gradient_in;   // encoded, from the next stage
  Bytes gradient_out;  // encoded, for the holders
};

class Entries final : private LedgerPort, private HopOwner {
 public:
  // REQUIRES: what it is given outlives it.
  Entries(const StagePeerOptions& options, const StagePeerEnvironment& env, Meters& meters);

  Neighbours& neighbours() { return neighbours_; }
  const Neighbours& neighbours() const { return neighbours_; }
  Courier& courier() { return courier_; }
  const Courier& courier() const { return courier_; }
  Windows& windows() { return windows_; }
  const Windows& windows() const { return windows_; }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }
  EntryCredits& credits() { return *credits_; }
  BaseBook& bases() { return bases_; }
  const BaseBook& bases() const { return bases_; }
  // Null: not kept.
  std::shared_ptr<EntryTensors> tensors(EntrySerial serial) const;

  // Why it cannot be an entry here whatever the ledger says; none: it can.
  std::optional<BusyReason> unfit(const Remote& from, const Forward& message, TransferId transfer);
  void on_forward(const Remote& from, const Forward& message, TransferId transfer);
  // True: they were a gradient's, or an entry's input.
  bool on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames);
  // Returns the sessions that are over.
  std::vector<Session> on_members(const MemberList& list);
  void on_link_down(const Remote& remote);
  // Call every few ten milliseconds. `job_ms`: the device's present job runs for so long. `beat`: holders hear where
  // all of their claims stand, else of what changed.
  void tick(std::uint32_t job_ms, bool beat);

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

  std::shared_ptr<EntryTensors> tensors_of(const MicrobatchId& microbatch) const;  // REQUIRES: they are kept
  // What its lines add to what it says that a microbatch takes here.
  void add_lines(Gradient& message, const Session& to, EntrySerial serial) const;
  void note_stranded();
  void send_progress(std::uint32_t job_ms, bool all);

  const StagePeerOptions& options_;
  const StagePeerEnvironment& env_;
  Meters& meters_;
  Neighbours neighbours_;
  Courier courier_;
  Windows windows_;
  const std::shared_ptr<EntryCredits> credits_;  // read by the ledger
  Ledger ledger_;
  std::unordered_map<EntrySerial, std::shared_ptr<EntryTensors>> tensors_;  // of the ledger's live entries
  BaseBook bases_;
  std::unordered_map<Lease, HopPhase> told_;  // phases our holders know
  bool stranded_ = false;                     // and that was said
  LogThrottle said_;
};

}  // namespace shoal
