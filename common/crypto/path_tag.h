#pragma once
// By what the trainer knows that an entry of a path was made by the session that it names: a tag that this session and
// the launching process can make, and nobody else.
//
//   secret of a run   = BLAKE2b-256 of the run key's signature over a text of its own (Ed25519: always the same one)
//   key of a session  = BLAKE2b-256, keyed by that secret, of (peer_tag, incarnation)
//   tag of an entry   = the first 8 bytes of BLAKE2b-256, keyed by that key, of (trainer, serial, serial of the entry)
//
// The launching process gives a session its key when it admits it, and makes the key anew whenever it needs it: nothing
// is kept, so a resumed one knows them all, and no entry is older than its session's key. Pure; thread: any.
#include <cstdint>

#include "common/crypto/sign.h"
#include "common/ids.h"

namespace shoal {

Digest path_secret_of(const KeyPair& run);
Digest path_key_of(const Digest& secret, const Session& session);
std::uint64_t path_tag(const Digest& key, const MicrobatchId& microbatch, EntrySerial serial);

}  // namespace shoal
