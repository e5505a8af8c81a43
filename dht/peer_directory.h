#pragma once
// What the DHT gives: signed claims with expiry, never orders. Everything is verified before a caller sees it.
// Implementations: dht/dht_directory.h (over the supervised child), sim/sim_directory.h. Both pass
// tests/dht/directory_contract.h. Records are kept as the signed JSON text that stands in the DHT, so that any process
// can pass them on and anybody can check them.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "common/time.h"

namespace shoal {

struct PeerRecord {  // one per peer, under the key of its stage
  RunId run;
  PeerId peer;
  Session session;
  StageId stage;
  std::vector<std::string> addresses;  // "host:port", at most 3
  double rate = 0;                     // targets per second
  double queue_seconds = 0;
  Version version;
  bool serving = false;
  std::uint64_t sequence = 0;  // rises with every change; the highest wins
  WallTime expires{};          // 60 s after it was made
};

struct RunRecord {  // one per run, signed by the run's key
  RunId run;
  std::string name;
  std::uint16_t stages = 0;
  Digest manifest;                     // BLAKE2b-256 of the manifest's body
  std::vector<std::string> addresses;  // of the authority
  // Peers that serve, stage by stage, 9 for more; empty: not told (a run of more than 32 stages has no room for it).
  std::vector<std::uint8_t> serving{};
  std::optional<WallTime> parked_since{};  // a stage has had no serving peer since then, or none that reaches the next
  std::optional<StageId> stranded{};       // nobody of this stage reaches the next one
  std::optional<std::string> ended{};      // the run is over, for this reason; that never changes again
  std::uint64_t sequence = 0;
  WallTime expires{};
};

inline constexpr std::size_t kRecordBytesMax = 512;
inline constexpr std::size_t kExchangedMax = 64;  // records of one message of the peer exchange: each costs a signature

// Signed JSON text, at most kRecordBytesMax bytes; parse verifies signature, run and form, not expiry.
// ERRORS of parse: kMalformed, kTooLarge, kCorrupt (signature), kForeign (another run).
class KeyPair;  // common/sign.h
Result<std::string> pack_record(const PeerRecord& record, const KeyPair& key);
Result<std::string> pack_record(const RunRecord& record, const KeyPair& run_key);
Result<PeerRecord> parse_peer_record(const std::string& text, const RunId& run);
Result<RunRecord> parse_run_record(const std::string& text, const RunId& run);
std::string stage_key(const RunId& run, StageId stage);  // the documented DHT keys: "shoal/1/<run>/stage/<k>"
std::string run_key_name(const RunId& run);              // "shoal/1/<run>/run"

class PeerDirectory {
 public:
  virtual ~PeerDirectory() = default;
  // Publishes and keeps refreshing the newest record of ours until withdrawn. Never fails for the caller: the directory
  // may be away.
  virtual void announce(std::string signed_record, std::string key) = 0;
  virtual void withdraw(const std::string& key) = 0;
  // Asks the DHT; `done` is called once with what came within `budget` (verified, newest sequence per peer, not
  // expired), else with the cache.
  virtual void look_up_stage(StageId stage, Duration budget, std::function<void(std::vector<PeerRecord>)> done) = 0;
  virtual void look_up_run(Duration budget, std::function<void(Result<RunRecord>)> done) = 0;
  // Records that came another way (peer exchange); verified here, the first kExchangedMax of them.
  virtual void offer(const std::vector<std::string>& signed_records) = 0;
  // The newest unexpired records in memory, for peer exchange; at most `limit`.
  virtual std::vector<std::string> known(std::size_t limit) const = 0;
  virtual bool alive() const = 0;  // a child answers at present
};

}  // namespace shoal
