#pragma once
// An event file that keeps what is written to it, kind by kind.
#include <vector>

#include "events/event_log.h"

namespace shoal::test {

class KeptEvents final : public EventLog {
 public:
  void write(const EventRecord& record) override { kinds.push_back(record.event); }
  void set_session(const Session&) override {}
  void set_stage(StageId) override {}
  std::vector<EventKind> kinds;
};

}  // namespace shoal::test
