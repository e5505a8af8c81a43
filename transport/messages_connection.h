#pragma once
// What two ends of a link say of themselves, of the bytes between them, and which others are there.
#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "transport/message_fields.h"
#include "transport/whereabouts.h"

namespace shoal {

enum class PeerRole : std::uint8_t {
  kPeer = 0,
  kTrainer = 1,  // the launching process: authority and trainer
  kObserver = 2,
};

// ---- the link ----

// Both ends, first: who I am.
struct Hello {
  std::uint32_t protocol = 0;
  RunId run;
  Session session;
  PeerRole role = PeerRole::kPeer;
  Whereabouts whereabouts;  // of the sender; not dialable: it dials alone
  SHOAL_FIELDS(protocol, run, session, role, whereabouts.addresses)
};

// Both ends: are you there?
struct Ping {
  std::uint64_t nonce = 0;
  SHOAL_FIELDS(nonce)
};

// Both ends: I am, and this was your question.
struct Pong {
  std::uint64_t nonce = 0;
  SHOAL_FIELDS(nonce)
};

// Receiver of chunks -> sender: you may send more.
struct ByteCredit {
  std::uint64_t bytes = 0;     // may be sent in addition
  std::uint64_t consumed = 0;  // taken from this link so far
  SHOAL_FIELDS(bytes, consumed)
};

// Receiver -> sender: these frames are not wanted. Sender -> receiver: no more of them will come.
// The end with the smaller PeerId numbers its transfers 1, 3, 5 ..., the other 2, 4, 6 ...: a number names one
// direction.
struct DropTransfer {
  std::uint64_t transfer = 0;
  SHOAL_FIELDS(transfer)
};

// ---- the directory (dht/) ----

// Peer -> launching process: what is this run?
struct ManifestQuery {
  SHOAL_FIELDS()
};

// Launching process -> peer: this.
struct Manifest {
  std::string body;                     // RUN.toml's canonical text
  std::vector<std::uint8_t> signature;  // by the run's key
  SHOAL_FIELDS(body, signature)
};

// Peers and the launching process, both ways: whom do you know?
struct PeersQuery {
  SHOAL_FIELDS()
};

// The answer to it.
struct Peers {
  std::vector<std::string> records;  // signed, as they stand in the DHT
  SHOAL_FIELDS(records)
};

}  // namespace shoal
