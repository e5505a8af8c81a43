#pragma once
// The state of version 0 of a run that begins from a model that exists: as an image (state/state_image.h) it has the
// anchor alone, because what a rule shares beside it is zero then. It is the same under every rule. The launching
// process gives it away chunk by chunk from its source, and never has all of it in memory.
// Pure but for the source. Thread: any; make_first_image: device thread.
#include <cstdint>
#include <span>

#include "common/bytes.h"
#include "common/crypto/hash.h"
#include "stages/executor.h"
#include "stages/weight_source.h"

namespace shoal {

struct FirstState {
  Digest digest, root;  // as StateImage's
  std::uint64_t bytes = 0;
  std::uint32_t chunks = 0;  // of kHashChunkBytes and the rest
};

// Reads all of it once. ERRORS: the source's.
Result<FirstState> measure_first_state(const StageSpec& spec, const WeightSource& source);
// The digest alone, of what the source gave. REQUIRES: values are all of the stage's.
Digest digest_of_first(const StageSpec& spec, std::span<const float> values);
// REQUIRES: index < chunks. ERRORS: the source's.
Result<Bytes> first_chunk(const StageSpec& spec, const WeightSource& source, std::uint32_t index);
// The same image of an executor whose anchor is still the first one.
Bytes make_first_image(StageExecutor& executor);

}  // namespace shoal
