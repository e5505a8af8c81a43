#pragma once
// The trainer's log and what follows from it: which microbatches are open, logged, done, and what was lost by name. The
// log is the only decision: one record per microbatch with the entries of the winning path, durable before the first
// COMMIT leaves; a logged id is never issued again.
//
// State machine over bytes: the caller appends what it is given and says when it is durable. What is below low() is
// settled, durably, and only counted: compacted() says the rest in a few records, however long the run is.
//
// Thread: loop only.   Bounds: `window` ids between low() and the next serial; 16 bytes a session that is over. Serial
// n is entry n of the run's sample order; a life record says so for people, and which text the order is of.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/result.h"
#include "router/done_queue.h"
#include "router/lost_book.h"
#include "router/trainer_records.h"
#include "transport/messages.h"

namespace shoal {

class CommitBook {
 public:
  static constexpr std::uint64_t kWindow = 4096;  // W, unless a run's rounds need more
  static constexpr std::size_t kAskersMax = 8;    // of one microbatch

  enum class StageState : std::uint8_t { kOutstanding, kCommitted, kMerged, kLost };
  struct Logged {
    std::vector<EntryName> path;  // one entry per stage
    std::vector<StageState> stages;
    double loss_sum = 0;
    std::uint64_t targets = 0;
    bool durable = false;
  };
  using Listing = LostBook::Listing;

  CommitBook(std::uint64_t trainer, std::uint16_t stages, std::uint64_t window = kWindow);
  // Reads the log of an earlier life. What it says is told to nobody before the log is synced: RecordLog::settled().
  // ERRORS: kCorrupt (also: the log does not begin with its header), kForeign (another trainer or number of stages).
  Status replay(ByteView record);
  // The records of a log that says what this one has said so far, to take its place (RecordLog::compact). REQUIRES: the
  // run has not ended, and nothing was listed for its end.
  std::vector<Bytes> compacted() const;
  Bytes header_record() const { return bytes_of(HeaderRecord{trainer_, stages_}); }
  Bytes life_record(const LifeRecord& life) { return bytes_of(life_.emplace(life)); }
  const std::optional<LifeRecord>& life() const { return life_; }  // the newest one; none in a log of no life

  // ---- issuing ----
  // The next id that may be issued: unlogged ids of an earlier life first. nullopt: the window is full (waiting_for()
  // says for whom).
  std::optional<MicrobatchId> next() const;
  void issued(const MicrobatchId& id);
  bool is_open(const MicrobatchId& id) const { return open_.contains(id.serial); }
  std::size_t open() const { return open_.size(); }
  std::uint64_t next_serial() const { return next_serial_; }

  // ---- deciding ----
  // The record to append for the winning path. REQUIRES: open, path has one entry per stage.
  Bytes log(const MicrobatchId& id, const Gradient& gradient);
  // From now on COMMITs may leave. Returns what is lost already: entries of sessions that ended while the path was on
  // its way.
  std::vector<Listing> durable(const MicrobatchId& id);
  // Commits to send or repeat: per session the items whose entry is outstanding, whole path from that stage down.
  std::map<Session, std::vector<CommitItem>> outstanding() const;
  std::map<Session, std::vector<CommitItem>> commits_for(const MicrobatchId& id) const;
  // A peer of `stage` holds the microbatch for a holder that went silent, and asks whether it is decided: what to tell
  // it, which settles or closes its entry. Still open: it is remembered, and answers() has it once the path is durable.
  std::optional<CommitItem> ask(const MicrobatchId& id, StageId stage, const Session& session);
  std::map<Session, std::vector<CommitItem>> answers(const MicrobatchId& id);
  // The whole paths of a step's microbatches, those that are logged.
  std::vector<CommitItem> paths(const std::vector<MicrobatchId>& ids) const;

  // ---- following ----
  // An answer of `from`, which speaks for its own entries only. Set when the entry was gone and is lost by this.
  std::optional<Listing> on_ack(const CommitAckItem& item, const Session& from);
  // The stage of an entry of a path whose commit its session acknowledged, and that no round has yet.
  std::optional<StageId> acknowledged(const CommitAckItem& item) const;
  // `merged` is called for each entry that the round marks. Returns those that were lost before and are in the round
  // all the same, which a correct swarm never produces: they stay lost and are counted in contradictions().
  std::vector<Listing> on_round_commit(
      const RoundCommit& commit, const std::function<void(const MicrobatchId&, StageId, const EntryName&)>& merged);
  // The session is over; its entries that no committed round named are lost.
  std::vector<Listing> on_session_over(const Session& session, std::string_view cause);
  bool ended() const { return ended_; }  // the log says so (EndRecord): durable before END is sent
  // Lists whatever is neither merged nor lost; used when nothing more can secure it.
  std::vector<Listing> list_rest(std::string_view cause);
  // What was merged or lost since the last call, as much as one record takes.
  Bytes done_record() { return bytes_of(done_.take()); }
  // The last done_record() is durable. Only now may low() pass what it names: below low() peers forget, and a listing
  // that nobody can repeat would be lost with this process.
  void done_durable();
  const DoneQueue& done() const { return done_; }
  std::uint16_t stages() const { return stages_; }
  std::uint64_t low() const { return low_; }
  const Logged* find(const MicrobatchId& id) const;
  std::uint64_t committed() const { return committed_; }
  std::uint64_t committed_targets() const { return committed_targets_; }
  const LostBook& lost() const { return lost_; }
  std::uint64_t contradictions() const { return contradictions_; }
  // Whether an entry of it is already in the log (above low): a path that repeats one is malformed.
  bool names_any(const std::vector<EntryName>& path) const;
  // The first of the session's serials that nobody may bring to a round of the stage, and why: it is no entry of a
  // durable path there, or it is merged or lost already and would count twice. None: all of them may come.
  std::optional<std::string> unfit_for_round(StageId stage, const Session& session,
                                             const std::vector<std::uint64_t>& serials) const;
  std::size_t undecided(const Session& session) const;  // logged entries of it that are neither merged nor lost
  std::size_t unmerged() const;                         // over all sessions
  // The sessions whose entries hold the low-water mark down; none: all of it is decided, or it is not logged yet.
  std::vector<Session> holding_up() const;
  std::string waiting_for() const;  // for people: the session that holds the window up

 private:
  void set(std::uint64_t serial, Logged& logged, std::size_t stage, StageState state, std::string_view cause);
  void raise_low();
  CommitItem from_stage(std::uint64_t serial, const Logged& logged, std::size_t stage) const;
  std::vector<DoneItem> decided() const;  // above low()
  Status apply(const HeaderRecord& record);
  Status apply(const LifeRecord& record);
  Status apply(const PathRecord& record);
  Status apply(const DoneRecord& record);
  Status apply(const BaseRecord& record);
  Status apply(const EndRecord&);

  std::uint64_t trainer_;
  std::uint16_t stages_;
  std::uint64_t window_;
  bool header_seen_ = false;
  std::uint64_t next_serial_ = 0;
  std::uint64_t low_ = 0;
  bool ended_ = false;
  std::optional<LifeRecord> life_;
  std::set<std::uint64_t> open_, reissue_;
  std::map<std::uint64_t, Logged> logged_;      // serial -> above low
  mutable std::set<std::uint64_t> unanswered_;  // serials of logged_ with an outstanding entry, and some that had one
  std::map<EntryName, std::uint64_t> by_entry_;
  std::map<std::uint64_t, std::map<Session, StageId>> askers_;  // of microbatches that are not durable yet
  std::set<Session> over_;  // ended sessions: no round will name their later entries
  LostBook lost_;
  DoneQueue done_;
  std::uint64_t targets_below_ = 0, committed_ = 0, committed_targets_ = 0, contradictions_ = 0;
};

}  // namespace shoal
