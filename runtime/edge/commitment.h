#pragma once
// What a pass was computed of and what it made of it, in names: the bytes that its coder saw, and the weights. Two
// peers that computed the same pass have the same one; a replay at these weights (stages/executor.h) makes what went
// again. A value.
#include "common/ids.h"

namespace shoal {

struct Commitment {
  Digest came, went;  // of the frames that came and went, BLAKE2b-256; of none: of no bytes
  WeightStamp weights = 0;
  auto operator<=>(const Commitment&) const = default;
};

}  // namespace shoal
