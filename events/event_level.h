#pragma once
// How much a process writes of what happens (`--events-level`). Each level has all lines of those before it; the table
// of kinds (events/event_schema.h) says from which on a kind is written. Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <string_view>

#include "events/event_kind.h"

namespace shoal {

enum class EventLevel : std::uint8_t {
  kRounds,   // what is decided, and what each session made of rounds
  kEntries,  // and the life of each entry
  kFull,     // and what holders say of their claims
};
inline constexpr EventLevel kEventLevels[] = {EventLevel::kRounds, EventLevel::kEntries, EventLevel::kFull};

std::string_view name_of(EventLevel level);  // "rounds", "entries", "full"
std::optional<EventLevel> event_level_named(std::string_view name);
bool is_written(EventKind kind, EventLevel level);

}  // namespace shoal
