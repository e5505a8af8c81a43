#pragma once
// What the DHT gives: signed claims with expiry, never orders. Everything is verified before a caller sees it.
// Implementations: dht/dht_directory.h (over the supervised child), sim/sim_directory.h. Both pass
// tests/dht/directory_contract.h. Records are kept as the signed JSON text that stands in the DHT, so that any process
// can pass them on and anybody can check them.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "common/time.h"
#include "metrics/launch_figures.h"
#include "metrics/peer_figures.h"
#include "transport/whereabouts.h"

namespace shoal {

struct DiskRecord {  // a checkpoint on a peer's own disk
  Version version;
  WallTime saved{};  // by the peer's clock
};

struct PeerRecord {  // one per peer, under the key of its stage
  RunId run;
  PeerId peer;
  Session session;
  StageId stage;
  Whereabouts whereabouts;  // at most 3 addresses
  Version version;
  bool serving = false;
  PeerFigures figures{};                // those with a key of a record; all but kAlways where there is room
  std::optional<DiskRecord> on_disk{};  // its newest
  std::uint64_t sequence = 0;           // rises with every change; the highest wins
  WallTime expires{};                   // 60 s after it was made
};

struct RunRecord {  // one per run, signed by the run's key
  RunId run;
  std::string name;
  std::uint16_t stages = 0;
  Digest manifest;                     // BLAKE2b-256 of the manifest's body
  Whereabouts whereabouts;             // of the authority
  std::optional<std::string> ended{};  // the run is over, for this reason; that never changes again
  std::uint64_t sequence = 0;
  WallTime expires{};
};

enum class RunState : std::uint8_t {
  kWaiting,  // for the first peer of a stage
  kTraining,
  kParked,  // a stage has nobody who serves, or nobody who reaches the next one
  kEnding,  // settles, secures, validates, saves
  kEnded,
};
std::string_view name_of(RunState state);  // "waiting", "training", ...

// A session on the signed member list, or one that stood there lately.
struct MemberRow {
  enum class Place : std::uint8_t { kServing, kJoining, kLeaving, kGone };
  std::uint64_t tag = 0;  // the first 8 bytes of its key, as Session::peer_tag
  StageId stage;
  Place place = Place::kJoining;
  std::uint16_t quiet_s = 0;  // since its last beat; of one that is gone: since its session ended
};

// How a run stands, as its launching process tells it, in as many parts as its members need.
struct StandingRecord {
  RunId run;
  std::uint16_t part = 0, parts = 1;
  std::vector<MemberRow> peers{};  // of this part
  std::uint32_t unnamed = 0;       // members that no part has room for. This and the rest: of part 0 alone
  RunState state = RunState::kWaiting;
  std::optional<WallTime> since{};  // the state's
  std::optional<StageId> stage{};   // parked: the first stage that has nobody, or nobody who reaches the next
  bool stranded = false;            // parked: the latter
  std::vector<std::string> last{};  // parked: short names of the last members of `stage`, at most kRecordLastMax
  LaunchFigures figures{};          // those with a key of a record
  std::uint64_t sequence = 0;       // that of all parts of one telling
  WallTime expires{};
};

inline constexpr std::size_t kStandingPartsMax = 32;
inline constexpr std::size_t kRecordLastMax = 3;
inline constexpr std::size_t kRecordBytesMax = 512;
inline constexpr std::size_t kExchangedMax = 64;  // records of one message of the peer exchange: each costs a signature

// Signed JSON text, at most kRecordBytesMax bytes; parse verifies signature, run and form, not expiry.
// ERRORS of parse: kMalformed, kTooLarge, kCorrupt (signature), kForeign (another run).
class KeyPair;  // common/crypto/sign.h
Result<std::string> pack_record(const PeerRecord& record, const KeyPair& key);
Result<std::string> pack_record(const RunRecord& record, const KeyPair& run_key);
Result<PeerRecord> parse_peer_record(const std::string& text, const RunId& run);
Result<RunRecord> parse_run_record(const std::string& text, const RunId& run);
std::string stage_key(const RunId& run, StageId stage);          // the documented DHT keys: "shoal/1/<run>/stage/<k>"
std::string run_key_name(const RunId& run);                      // "shoal/1/<run>/run"
std::string standing_key(const RunId& run, std::uint16_t part);  // "shoal/1/<run>/standing/<part>"
// `whole`: with all peers in part 0; its parts in order, the peers that stand first in the first ones. What
// kStandingPartsMax parts have no room for is counted as unnamed. ERRORS: kInput (not the run's key).
Result<std::vector<std::string>> pack_standing(const StandingRecord& whole, const KeyPair& run_key);

inline constexpr Duration kFallsWindow = std::chrono::minutes(10);

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
  // One part of how the run stands. ERRORS: kTimeout.
  virtual void look_up_standing(std::uint16_t part, Duration budget,
                                std::function<void(Result<StandingRecord>)> done) = 0;
  // Records that came another way (peer exchange); verified here, the first kExchangedMax of them.
  virtual void offer(const std::vector<std::string>& signed_records) = 0;
  // The newest unexpired records in memory, for peer exchange; at most `limit`.
  virtual std::vector<std::string> known(std::size_t limit) const = 0;
  virtual bool alive() const = 0;  // a child answers at present
  // How often the way into the DHT went away in the last kFallsWindow: strangers can end OpenDHT with a datagram.
  virtual std::uint32_t falls() const { return 0; }
};

}  // namespace shoal
