#pragma once
// The first bytes on each lane of a dialled connection, inside CURVE: who speaks, which connection the lane belongs to,
// and the verdict. The claim is compared with the key that CURVE proved; nothing else is believed. Byte table:
// docs/WIRE.md.
#include <array>
#include <cstdint>
#include <string>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/result.h"
#include "transport/wire.h"

namespace shoal {

struct LaneGreeting {  // dialler -> listener
  Lane lane = Lane::kControl;
  PeerId peer;                            // the dialler's
  std::array<std::uint8_t, 16> secret{};  // random; the same on both lanes of one connection
};

struct LaneAnswer {  // listener -> dialler
  Lane lane = Lane::kControl;
  bool accepted = false;
  std::uint16_t bulk_port = 0;  // where the bulk lane is to be dialled, on the same host
  std::string reason;           // of a refusal; at most kTextMax bytes
};

inline constexpr std::size_t kLaneGreetingBytes = 56;

Bytes pack_lane_greeting(const LaneGreeting& greeting);
Result<LaneGreeting> parse_lane_greeting(ByteView bytes);  // ERRORS: kMalformed, kVersion
Bytes pack_lane_answer(const LaneAnswer& answer);
Result<LaneAnswer> parse_lane_answer(ByteView bytes);  // ERRORS: kMalformed, kVersion

}  // namespace shoal
