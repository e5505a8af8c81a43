#pragma once
// An event as the books take it: in the process that wrote it, or as a line of its file. Borrows the record.
#include <optional>

#include "common/ids.h"
#include "events/event_record.h"

namespace shoal {

struct SeenEvent {
  const EventRecord& record;
  double time = 0;             // seconds since 1970
  bool of_trainer = false;     // written by the launching process, or by `solo`; else by a peer
  Session session{};           // the writer's
  std::optional<RunId> run{};  // whose event it is, where a line says so
};

}  // namespace shoal
