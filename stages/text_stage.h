#pragma once
// A text that a stage continues place by place, at the anchor: it keeps the keys and values of the places that it has
// seen, so that one more costs one place's work. Made by StageExecutor::begin_text(); dropped when the text is over, or
// when the anchor moved and the text is to be of one model.
// Thread: its executor's.   Borrows: its executor.   Bounds: the model's context, which extend() keeps to.
#include <cstdint>

#include "stages/frame_coder.h"

namespace shoal {

class TextStage {
 public:
  virtual ~TextStage() = default;
  // The next N places, N >= 1. tokens: (1, N) ids (holds_ids); the first stage reads them, the others take the
  // activation (1, N, d) from the coder. The last stage returns the logits of the last place, (V) kF32; the others
  // encode the activation of the places for the next stage and return nothing. ERRORS: kMalformed (shape, dtype, an id
  // >= V, places beyond the context), kNonFinite, kTooLarge (device memory), the coder's. On an error the text is as it
  // was.
  virtual Result<HostTensor> extend(const HostTensor& tokens, FrameCoder& coder) = 0;
  virtual std::uint64_t places() const = 0;  // seen
  virtual std::uint64_t bytes() const = 0;   // kept of them
};

}  // namespace shoal
