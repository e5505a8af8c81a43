#pragma once
// What one process believes about one run: the newest record of every peer and of the run itself, each one verified.
// A record is live until its own expiry plus kClockSkewMax. After that it is remembered (for a day) as a hint where to
// dial, and so that an older one cannot come back, until its place is needed. Thread: loop only.   Ownership: a value
// that owns its records.   Bounds: kTableRecordsMax peers, limits::kReplicasMax of one stage, kStandingPartsMax parts.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/rng.h"
#include "dht/record.h"

namespace shoal {

inline constexpr std::size_t kTableRecordsMax = 4096;
inline constexpr Duration kRememberedFor = std::chrono::hours(24);

struct RecordCounters {  // of offered records, by outcome
  std::uint64_t accepted = 0, unchanged = 0;
  std::uint64_t malformed = 0, too_large = 0, corrupt = 0, foreign = 0, stale = 0;
  std::uint64_t refused() const { return malformed + too_large + corrupt + foreign + stale; }
};

class RecordTable {
 public:
  // `rng` chooses who makes room when a stage is full of live records: whoever floods a key must not keep honest peers
  // out for good. A peer that the run's signed list names makes room last.
  RecordTable(const RunId& run, Rng rng) : run_(run), rng_(rng) {}

  // Takes a record that came from anywhere. True: something changed; false: known already. What is held word for word
  // is not read again, since its signature costs far more than to find its text. ERRORS: those of parsing, kStale
  // (expired, older than what is held, or made by a clock too far ahead).
  Result<bool> offer(const std::string& text, WallTime now);
  // The same for what a cache on disk held: may be expired, at most kRememberedFor ago.
  Result<bool> restore(const std::string& text, WallTime now);

  // Live peers of a stage in the order of their ids.
  std::vector<PeerRecord> stage(StageId stage, WallTime now) const;
  // Everything remembered of it, newest first.
  std::vector<PeerRecord> remembered_stage(StageId stage, WallTime now) const;
  // The newest record of the run, also an expired one.
  std::optional<RunRecord> run_record(WallTime now) const;
  // One part of how it stands, also an expired one.
  std::optional<StandingRecord> standing(std::uint16_t part, WallTime now) const;
  // Texts of the run's record and of peers, the run's first, then newest first.
  std::vector<std::string> live_texts(std::size_t limit, WallTime now) const;
  std::vector<std::string> remembered_texts(std::size_t limit, WallTime now) const;

  // Whose clock is how far from ours, in words, as far as records were refused for their time: nobody passes on what is
  // so old, or makes what is so new. Empty: nobody's.
  std::string clocks_apart() const;

  std::size_t size() const { return peers_.size() + standing_.size() + (run_record_ ? 1 : 0); }
  const RecordCounters& counters() const { return counters_; }

 private:
  struct Held {
    AnyRecord record;
    std::string text;
  };
  Result<bool> take(const std::string& text, WallTime now, Duration age_max);
  void note_clock(const AnyRecord& record, WallTime now);
  Result<bool> place(Held& held, AnyRecord record, const std::string& text);
  Held hold(AnyRecord record, const std::string& text);
  void drop(std::map<PeerId, Held>::iterator peer);
  void make_room(StageId stage, WallTime now);
  bool is_member(const PeerRecord& record) const;
  std::vector<std::string> texts(std::size_t limit, WallTime now, Duration age_max) const;
  void count(ErrorCode code);

  RunId run_;
  Rng rng_;
  std::optional<Held> run_record_;
  std::map<std::uint16_t, Held> standing_;  // by part
  std::map<PeerId, Held> peers_;
  std::unordered_set<std::string> texts_;  // of all that is held
  RecordCounters counters_;
  std::map<PeerId, Duration> apart_;  // signer -> how far its clock is ahead of ours, below 0 behind; of a few
};

}  // namespace shoal
