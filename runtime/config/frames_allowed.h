#pragma once
// Which messages may bring frames, and how many bytes of them: looked up when a header is here, before anything of the
// frames is kept. Pure.
#include <cstdint>

#include "runtime/config/config.h"
#include "state/state_transfer.h"
#include "transport/messages.h"

namespace shoal {

// To a peer that serves `spec`: what its shapes need with the codec that needs most. 0: no frames.
// `part_bytes`: of a round's whole payload.
std::uint64_t frame_bytes_allowed(const Message& message, const RunConfig& config, const StageSpec& spec,
                                  std::uint64_t part_bytes);

// A chunk of a stage's state: it was asked of `from` and is no larger than one. `fetcher` may be null.
bool chunk_wanted(const StateFetcher* fetcher, const PeerId& from, const Chunk& chunk, std::uint64_t frame_bytes);

}  // namespace shoal
