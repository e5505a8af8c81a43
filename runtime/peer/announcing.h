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
#include "runtime/peer/announce_pace.h"
#include "transport/messages.h"

namespace shoal {

class Announcing {
 public:
  static constexpr Duration kExchangePeriod = 20s;  // asking another for the records that it knows

  // `directory` may be null. `whereabouts`: our own, for others to dial.
  Announcing(PeerDirectory* directory, const Clock& clock, const KeyPair& key, const RunId& run,
             Whereabouts whereabouts)
      : directory_(directory), clock_(clock), key_(key), run_(run), whereabouts_(std::move(whereabouts)) {}

  // ---- our record ----
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
  const Whereabouts whereabouts_;
  AnnouncePace pace_;
  std::uint64_t sequence_ = 0;             // of our newest record
  TimePoint told_at_{};                    // it
  std::uint64_t sent_ = 0, received_ = 0;  // then
  TimePoint next_exchange_{};
};

}  // namespace shoal
