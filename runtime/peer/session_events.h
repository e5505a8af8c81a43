#pragma once
// The events of a peer, session after session: behind the last line of a session (`fenced` or `end`) what is still said
// of it goes nowhere, since whoever reads the file takes that line for its last. Its process may still say what it
// moved, and that it ends (docs/EVENTS.md). Thread: loop only. Borrows: the file.
#include "events/event_log.h"

namespace shoal {

class SessionEvents final : public EventLog {
 public:
  explicit SessionEvents(EventLog& file) : file_(file) {}

  void write(const EventRecord& record) override {
    const bool of_process = record.event == EventKind::kBytes || record.event == EventKind::kEnd;
    if (ended_ || (fenced_ && !of_process)) return;
    file_.write(record);
    fenced_ = fenced_ || record.event == EventKind::kFenced;
    ended_ = record.event == EventKind::kEnd;
  }
  void set_session(const Session& session) override {
    fenced_ = false;
    file_.set_session(session);
  }
  void set_stage(StageId stage) override { file_.set_stage(stage); }

 private:
  EventLog& file_;
  bool fenced_ = false, ended_ = false;
};

}  // namespace shoal
