#pragma once
// How a reader has a text continued by the stages of a running swarm (runtime/stage_peer/text_desk.h).
#include <cstdint>
#include <string>

#include "common/ids.h"
#include "transport/message_fields.h"

namespace shoal {

// Reader -> serving peer: `count` more places of my text, from `first` on, through your stage. Frames: the ids, `count`
// little-endian u32; then, not on the first stage, the activation (1, count, d), f32. From the last stage the likeliest
// of the next ids are wanted, so many of them.
struct Extend {
  std::uint64_t text = 0;  // the reader's name for it
  StageId stage;
  std::uint32_t first = 0, count = 0;
  std::uint32_t likeliest = 0;
  SHOAL_FIELDS(text, stage, first, count, likeliest)
};

enum class TextAnswer : std::uint8_t {
  kDone = 0,
  kUnknown = 1,  // those before `first` are not here: begin anew with place 0
  kBusy = 2,     // as many texts as are kept: ask another peer of the stage, or later
  kRefused = 3,  // it cannot be: the reason
};

// Serving peer -> reader. Frames of kDone: the activation for the next stage; of the last stage the likeliest ids, u32,
// and their logits, f32.
struct Extended {
  std::uint64_t text = 0;
  StageId stage;
  std::uint32_t first = 0, count = 0;
  TextAnswer answer = TextAnswer::kDone;
  Version version;     // of the anchor that it was computed at
  std::string reason;  // empty with kDone
  SHOAL_FIELDS(text, stage, first, count, answer, version, reason)
};

}  // namespace shoal
