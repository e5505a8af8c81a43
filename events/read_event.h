#pragma once
// One line of an event file as a value: what its event wrote (events/event_schema.h) behind the line's head. Every
// reader of event files in C++ reads lines by this. Pure; thread-safe.
#include <string>
#include <string_view>

#include "events/event_schema.h"

namespace shoal {

// `event` counts only with a row.
struct ReadEvent : EventRecord {
  const EventRow* row = nullptr;  // null: `name` is no event of its writer
  std::uint64_t has = 0;          // bits by place: of the head, then of event_fields()
  double time = 0;
  std::string name, role;
  RunId run;
  PeerId peer;
  Session session;

  bool is(EventKind kind) const { return row != nullptr && event == kind; }
  bool is_trainer() const { return role == "trainer"; }
  bool is_peer() const { return role == "peer"; }
};

// False: no object of JSON, or a field that is not of its form. Fields that the schema does not name are passed over.
// `event` is overwritten.
bool read_event(std::string_view line, ReadEvent& event);

// The field that a line of its event must have and this one has not; empty: it has them all.
std::string_view lacking_field(const ReadEvent& event);

}  // namespace shoal
