#pragma once
// What goes between the microbatches of one session and its links: from the header of an entry to its COMMIT it answers
// for what ledger and courier ask of the process, so that an entry's way through the stage stays here.
//
// Thread: loop only.   Borrows: what it is made with.   Bounds: the ledger's.
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/log_throttle.h"
#include "router/courier.h"
#include "router/ledger.h"
#include "runtime/edge/base_book.h"
#include "runtime/stage_peer/entry_tensors.h"
#include "runtime/stage_peer/meters.h"
#include "runtime/stage_peer/stage_session.h"

namespace shoal {

// Why a stage whose anchor is `here` may not answer a Forward of kind evaluate; none: it may, or the Forward trains.
// What is validated at a run's end must be one model, so the holder names the anchor of every stage (Forward.versions).
// An estimate while the run trains names none, since anchors move under it: each stage answers at the one that it has.
// The anchor moves with rounds alone, and none is opened while a run is validated, so one that fits at the Forward's
// arrival fits when the device gets there. Pure.
std::optional<BusyReason> evaluation_refused(const Forward& message, const StageSpec& spec, Version here);

class EntryDesk final : public LedgerPort, public HopOwner {
 public:
  // REQUIRES: what it is given outlives it, and is made before anything is called; courier and ledger are made with it.
  EntryDesk(const StageSession& session, Neighbours& neighbours, Courier& courier, Ledger& ledger, KeptTensors& tensors,
            BaseBook& bases, Meters& meters)
      : session_(session),
        neighbours_(neighbours),
        courier_(courier),
        ledger_(ledger),
        tensors_(tensors),
        bases_(bases),
        meters_(meters) {}

  // Why it cannot be an entry here whatever the ledger says; none: it can.
  std::optional<BusyReason> unfit(const Remote& from, const Forward& message, TransferId transfer);
  void on_forward(const Remote& from, const Forward& message, TransferId transfer);
  // True: they were a gradient's, or an entry's input.
  bool on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames);
  // Returns the sessions that are over.
  std::vector<Session> on_members(const MemberList& list);
  void on_link_down(const Remote& remote);
  // `job_ms`: the device's present job runs for so long. `all`: holders hear where all of their claims stand, else of
  // what changed. Call every few ten milliseconds.
  void send_progress(std::uint32_t job_ms, bool all);

 private:
  // HopOwner
  std::vector<Bytes> frames_of(const Session& to, const Forward& message, bool key) override;
  void on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) override;
  void on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) override;
  void on_parked(const MicrobatchId& microbatch, StageId stage, bool parked) override;
  // LedgerPort (write serves both)
  void write(const EventRecord& event) override { session_.events.write(event); }
  void send(const Session& to, Message message) override { neighbours_.send(to, std::move(message)); }
  bool ask_trainer(Waiting message) override;
  bool send_gradient(const Session& to, Gradient message, EntrySerial serial) override;
  void refuse_frames(const Session& from, TransferId transfer) override;
  void discard(EntrySerial serial) override;

  std::shared_ptr<EntryTensors> tensors_of(const MicrobatchId& microbatch) const;  // REQUIRES: they are kept
  // What its lines add to what it says that a microbatch takes here.
  void add_lines(Gradient& message, const Session& to, EntrySerial serial) const;

  const StageSession& session_;
  Neighbours& neighbours_;
  Courier& courier_;
  Ledger& ledger_;
  KeptTensors& tensors_;
  BaseBook& bases_;
  Meters& meters_;
  std::unordered_map<Lease, HopPhase> told_;  // phases our holders know
  LogThrottle said_;
};

}  // namespace shoal
