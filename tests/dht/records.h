#pragma once
// Records to test with.
#include <string>

#include "common/crypto/sign.h"
#include "dht/record.h"

namespace shoal {

inline KeyPair key_of_number(std::uint8_t number) {
  std::array<std::uint8_t, 32> seed{};
  seed.fill(number);
  return KeyPair::from_seed(seed);
}
inline RunId run_of(const KeyPair& key) { return {key.id().bytes}; }

inline PeerRecord peer_record(const KeyPair& run, const KeyPair& peer, std::uint16_t stage, std::uint64_t sequence,
                              WallTime made) {
  PeerRecord record;
  record.run = run_of(run);
  record.peer = peer.id();
  record.session = Session::of(peer.id(), 0x0123456789abcdefull);
  record.stage = StageId(stage);
  record.whereabouts.addresses = {"198.51.100.7:7741", "[2001:db8::7]:7741"};
  record.figures.rate = 5120.5;
  record.figures.queue_seconds = 0.31;
  record.version = Version(18);
  record.serving = true;
  record.sequence = sequence;
  record.expires = made + kRecordTtl;
  return record;
}

inline RunRecord run_record(const KeyPair& run, std::uint64_t sequence, WallTime made) {
  RunRecord record;
  record.run = run_of(run);
  record.name = "tide pool";
  record.stages = 4;
  record.manifest.bytes.fill(0xab);
  record.whereabouts.addresses = {"198.51.100.1:7741"};
  record.sequence = sequence;
  record.expires = made + kRecordTtl;
  return record;
}

inline std::string packed(const PeerRecord& record, const KeyPair& key) { return pack_record(record, key).value(); }
inline std::string packed(const RunRecord& record, const KeyPair& key) { return pack_record(record, key).value(); }

// 2023-11-14, a whole second: records carry whole seconds.
inline constexpr WallTime kTestWall{std::chrono::seconds(1'700'000'000)};

}  // namespace shoal
