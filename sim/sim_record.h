#pragma once
// What happened on a SimNetwork: a hash over every event, and the errors that its wires were told.
//
// Thread: the simulation's.   Borrows: the loop, whose time it reads.   Bounds: one count an error code.
#include <cstdint>
#include <map>

#include "common/event_loop.h"
#include "transport/wire.h"

namespace shoal {

class SimRecord {
 public:
  explicit SimRecord(const EventLoop& loop) : loop_(loop) {}

  void dialled(ConnectionId id) { mix(Event::kConnect, id, 0); }
  void up(ConnectionId id) { mix(Event::kUp, id, 0); }
  void bytes(ConnectionId id, Lane lane, std::uint64_t bytes);
  void busy(ConnectionId id, std::uint64_t bytes);  // a message that its lane did not take
  void down(ConnectionId id, ErrorCode cause);

  // Over every event: time, kind, connection, lane, size. The same seed and calls give the same hash.
  std::uint64_t hash() const { return hash_; }
  // What the wires were told, by code.
  const std::map<ErrorCode, std::uint64_t>& errors() const { return errors_; }

 private:
  enum class Event : std::uint8_t { kUp, kDown, kBytes, kBusy, kConnect };

  void mix(Event event, ConnectionId id, std::uint64_t detail);

  const EventLoop& loop_;
  std::uint64_t hash_ = 0;
  std::map<ErrorCode, std::uint64_t> errors_;
};

}  // namespace shoal
