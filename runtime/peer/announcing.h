#pragma once
// What a peer has to do with the directory: its own signed record, made anew at the pace of AnnouncePace, and the
// records of others, which peers exchange so that what memory holds for a DHT that is away stays fresh. Without a
// directory all of it does nothing.
// Thread: loop only.   Borrows: directory, clock and key, which outlive it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/crypto/sign.h"
#include "common/event_loop.h"
#include "dht/peer_directory.h"
#include "dht/record.h"
#include "transport/messages.h"

namespace shoal {

// When a peer's record in the directory is made anew: every kPeriod, and before that when it has news (another version,
// a first rate): the first of each kind in a session at once, so that who looks after a join sees it work; later ones
// not within kPause of the record before. Value; pure.
class AnnouncePace {
 public:
  static constexpr Duration kPeriod = kRecordPeriod, kPause = 5s;

  bool due(TimePoint now, Version version, double rate) const {
    if (!told_at_ || now - *told_at_ >= kPeriod) return true;
    const bool moved = version != version_, measured = rate > 0 && rate_ == 0;
    if ((moved && !ever_moved_) || (measured && !ever_measured_)) return true;
    return (moved || measured) && now - *told_at_ >= kPause;
  }
  void told(TimePoint now, Version version, double rate) {
    ever_moved_ = ever_moved_ || (told_at_ && version != version_);
    ever_measured_ = ever_measured_ || rate > 0;
    told_at_ = now;
    version_ = version;
    rate_ = rate;
  }

 private:
  std::optional<TimePoint> told_at_;
  Version version_;
  double rate_ = 0;
  bool ever_moved_ = false, ever_measured_ = false;
};

class Announcing {
 public:
  static constexpr Duration kExchangePeriod = 20s;  // asking another for the records that it knows

  // `directory` may be null. `whereabouts`: our own, for others to dial.
  Announcing(PeerDirectory* directory, const Clock& clock, const KeyPair& key, const RunId& run,
             Whereabouts whereabouts)
      : directory_(directory), clock_(clock), key_(key), run_(run), whereabouts_(std::move(whereabouts)) {}

  // ---- our record ----
  void be_told_at(Whereabouts whereabouts) { whereabouts_ = std::move(whereabouts); }
  struct Facts {
    Session session;
    StageId stage;
    Version version;
    bool serving = false;
    std::optional<DiskState> on_disk{};
    PeerFigures figures{};  // but what the record itself adds: rates of bytes, and falls
  };
  // The pace begins anew: who looks after a join sees the first news of it at once.
  void begin_session() { pace_ = {}; }
  void announce(const Facts& facts);
  void announce_if_due(const Facts& facts);
  void withdraw(StageId stage);

  // ---- the records of others ----
  // True at most every kExchangePeriod, and at the next call after exchange_soon().
  bool take_exchange();
  void exchange_soon() { next_exchange_ = {}; }
  // None: there is no directory to answer from.
  std::optional<std::vector<std::string>> known() const;
  void offer(const std::vector<std::string>& records);

 private:
  PeerDirectory* const directory_;
  const Clock& clock_;
  const KeyPair& key_;
  const RunId run_;
  Whereabouts whereabouts_;
  AnnouncePace pace_;
  std::uint64_t sequence_ = 0;             // of our newest record
  TimePoint told_at_{};                    // it
  std::uint64_t sent_ = 0, received_ = 0;  // then
  TimePoint next_exchange_{};
};

}  // namespace shoal
