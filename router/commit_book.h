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
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/record_log.h"
#include "common/result.h"
#include "transport/messages.h"

namespace shoal {

// Framing and torn tails: common/record_log.h. What is called a record here is its payload.
inline constexpr LogFormat kTrainerLog{.name = "trainer's log", .kind = 1, .version = 4, .record_bytes_max = 1u << 20};

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
  struct Listing {
    MicrobatchId microbatch;
    StageId stage;
    EntryName entry_name;
    std::string cause;
  };
  // (microbatch, stage) pairs that were lost: by peer (Session::peer_tag), stage and cause.
  using Losses = std::map<std::tuple<std::uint64_t, StageId, std::string>, std::uint64_t>;
  static constexpr std::size_t kCauseMax = 100;    // bytes of a cause that are kept
  static constexpr std::size_t kLossesMax = 4096;  // lines; further ones go by stage alone, as "other causes"
  // Where one life of the trainer began. A run goes on with the text it was begun with: another one under the same
  // serials would be other samples.
  struct Life {
    Session session;
    std::uint64_t cursor = 0;   // the next serial
    std::uint32_t epoch = 0;    // of the sample at the cursor
    std::uint64_t samples = 0;  // that the text is cut into
    Digest text;                // BLAKE2b-256 of the token file
    bool operator==(const Life&) const = default;
  };

  CommitBook(std::uint64_t trainer, std::uint16_t stages, std::uint64_t window = kWindow);
  // Reads the log of an earlier life. What it says is told to nobody before the log is synced: RecordLog::settled().
  // ERRORS: kCorrupt (also: the log does not begin with its header), kForeign (another trainer or number of stages).
  Status replay(ByteView record);
  // The records of a log that says what this one has said so far, to take its place (RecordLog::compact). REQUIRES: the
  // run has not ended, and nothing was listed for its end.
  std::vector<Bytes> compacted() const;
  Bytes header_record() const;  // the first record of a log
  Bytes life_record(const Life& life);
  const std::optional<Life>& life() const { return life_; }  // the newest one; none in a log of no life

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
  // The run is over: durable before END is sent, so that a resumed process knows.
  Bytes end_record() const;
  bool ended() const { return ended_; }
  // Lists whatever is neither merged nor lost; used when nothing more can secure it.
  std::vector<Listing> list_rest(std::string_view cause);
  // What was merged or lost since the last call, as much as one record takes. Written lazily: while done_dirty(),
  // which is false as long as one is on its way to the disk; and before the log is closed, until nothing is left.
  Bytes done_record();
  bool done_left() const { return !done_.empty(); }
  bool done_dirty() const { return !done_.empty() && writing_.empty(); }
  // The last done_record() is durable. Only now may low() pass what it names: below low() peers forget, and a listing
  // that nobody can repeat would be lost with this process.
  void done_durable();
  std::uint16_t stages() const { return stages_; }
  // Among the stage's rounds that were brought to this book (on_round_commit), the newest version. As the log says it,
  // once it is replayed.
  Version heard(StageId stage) const { return heard_[stage.value]; }
  // All that follows from the stage's rounds up to this version is durable: nobody needs to say it again.
  Version settled(StageId stage) const { return settled_[stage.value]; }

  std::uint64_t low() const { return low_; }
  const Logged* find(const MicrobatchId& id) const;
  std::uint64_t committed() const { return committed_; }
  std::uint64_t committed_targets() const { return committed_targets_; }
  std::uint64_t lost() const { return lost_; }
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
  Losses losses() const;
  // What the run's end left without a round (is_lost_by_end).
  const std::vector<Listing>& left_at_end() const { return left_at_end_; }

 private:
  void set(std::uint64_t serial, Logged& logged, std::size_t stage, StageState state, std::string_view cause);
  void raise_low();
  CommitItem from_stage(std::uint64_t serial, const Logged& logged, std::size_t stage) const;
  struct Done {
    std::uint64_t serial;
    std::uint16_t stage;
    bool lost;
    std::string cause;
  };
  Bytes path_record(std::uint64_t serial, const Logged& logged) const;
  // `all`: nothing more follows from the rounds up to heard().
  Bytes bytes_of(std::span<const Done> items, bool all) const;
  Bytes life_bytes() const;
  Bytes base_record() const;
  std::vector<Done> decided() const;  // above low()
  Status replay_path(ByteView record);
  Status replay_done(ByteView record);
  Status replay_life(ByteView record);
  Status replay_base(ByteView record);
  void count_loss(const Listing& listing, std::uint64_t pairs, Losses& losses) const;

  std::uint64_t trainer_;
  std::uint16_t stages_;
  std::uint64_t window_;
  bool header_seen_ = false;
  std::uint64_t next_serial_ = 0;
  std::uint64_t low_ = 0;
  bool ended_ = false;
  std::optional<Life> life_;
  std::set<std::uint64_t> open_, reissue_;
  std::map<std::uint64_t, Logged> logged_;      // serial -> above low
  mutable std::set<std::uint64_t> unanswered_;  // serials of logged_ with an outstanding entry, and some that had one
  std::map<EntryName, std::uint64_t> by_entry_;
  std::map<std::uint64_t, std::map<Session, StageId>> askers_;  // of microbatches that are not durable yet
  std::set<Session> over_;                 // ended sessions: no round will name their later entries
  std::map<EntryName, Listing> listings_;  // above low
  Losses losses_below_;                    // below low
  std::vector<Listing> left_at_end_;
  std::uint64_t targets_below_ = 0, lost_below_ = 0;
  std::vector<Done> done_, writing_;
  bool writing_all_ = false;  // writing_ has all that follows from the rounds up to writing_heard_
  std::vector<Version> heard_, settled_, writing_heard_;  // by stage
  std::map<std::uint64_t, std::size_t> undurable_;        // serial -> how many of its items are in done_ or writing_
  std::uint64_t committed_ = 0, committed_targets_ = 0, lost_ = 0, contradictions_ = 0;
};

}  // namespace shoal
