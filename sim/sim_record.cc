#include "sim/sim_record.h"

#include "common/ids.h"

namespace shoal {

void SimRecord::bytes(ConnectionId id, Lane lane, std::uint64_t bytes) {
  mix(Event::kBytes, id, bytes << 1 ^ static_cast<std::uint64_t>(lane));
}

void SimRecord::busy(ConnectionId id, std::uint64_t bytes) {
  ++errors_[ErrorCode::kBusy];
  mix(Event::kBusy, id, bytes);
}

void SimRecord::down(ConnectionId id, ErrorCode cause) {
  ++errors_[cause];
  mix(Event::kDown, id, static_cast<std::uint64_t>(cause));
}

void SimRecord::mix(Event event, ConnectionId id, std::uint64_t detail) {
  hash_ = mix64(hash_, static_cast<std::uint64_t>(loop_.now().time_since_epoch().count()));
  hash_ = mix64(hash_, mix64(static_cast<std::uint64_t>(event) << 56 ^ id, detail));
}

}  // namespace shoal
