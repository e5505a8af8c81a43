#pragma once
// How a peer gets the state of a stage from those that have it (sync/).
#include <cstdint>

#include "common/ids.h"
#include "transport/message_fields.h"

namespace shoal {

// Fetcher -> serving members: who has this version?
struct StateQuery {
  StageId stage;
  Version version;
  SHOAL_FIELDS(stage, version)
};

// Donor -> fetcher: I, and this is its image; or not I.
struct StateOffer {
  StageId stage;
  Version version;
  bool has = false;
  Digest root;  // BLAKE2b tree over 1 MiB chunks
  std::uint64_t bytes = 0;
  std::uint32_t chunks = 0;
  Digest digest;
  SHOAL_FIELDS(stage, version, has, root, bytes, chunks, digest)
};

// Fetcher -> donor: this chunk, please.
struct ChunkQuery {
  StageId stage;
  Version version;
  std::uint32_t index = 0;
  SHOAL_FIELDS(stage, version, index)
};

// Donor -> fetcher. Frame: the chunk's bytes.
struct Chunk {
  StageId stage;
  Version version;
  std::uint32_t index = 0;
  bool has = false;
  SHOAL_FIELDS(stage, version, index, has)
};

}  // namespace shoal
