#pragma once
// `--events FILE`: what happened in this process, as JSON lines that a stranger can audit (docs/EVENTS.md names every
// event and field). One line is one write(2) on an O_APPEND descriptor, nothing is kept in the process: what a killed
// process wrote is all there. A file that is full is cut and packed (events/event_segments.h).
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/event_loop.h"
#include "common/ids.h"
#include "common/result.h"
#include "events/event_level.h"
#include "events/event_record.h"

namespace shoal {

// The writing process.
struct EventIdentity {
  std::string role;  // "peer", "trainer" (also the authority, which lives with it), "solo"
  RunId run;
  PeerId peer;
  Session session;
  std::optional<StageId> stage{};  // of the session
};

// The line with its newline. Pure.
std::string event_line(const EventIdentity& identity, WallTime time, const EventRecord& record);

// Where events go. It alone adds who writes: run, peer, session, and the stage where a record names none.
// Thread: one at a time (the loop). Never fails for the caller.
class EventLog {
 public:
  virtual ~EventLog() = default;
  virtual void write(const EventRecord& record) = 0;
  virtual void set_session(const Session& session) = 0;  // the process goes on as a new one, which has no stage yet
  virtual void set_stage(StageId stage) = 0;             // of the session
};

std::unique_ptr<EventLog> make_silent_event_log();

inline constexpr std::uint64_t kEventSegmentBytes = 64u << 20;
struct EventLogOptions {
  EventLevel level = EventLevel::kFull;
  std::uint64_t segment_bytes = kEventSegmentBytes;  // of a file that is cut
};
// What of `record` is written at this level: none; or it, where it is a `start` with the level's name unless that is
// full.
std::optional<EventRecord> at_level(const EventRecord& record, EventLevel level);
// Appends to `path` (created 0644), or, where that is the file of another key, to one beside it that has this key in
// its name: a file is of one process. Behind a line that an earlier process left torn it writes "reopened". A write
// that fails is reported once in the log of the process, and the count of lines lost stands in the next line that can
// be written ("missing"). What the level leaves out is not written. Segments are packed on a thread that the log owns.
// Borrows the clock. ERRORS: kMissing (no such folder), kIo.
Result<std::unique_ptr<EventLog>> open_event_log(const std::string& path, EventIdentity identity, const Clock& clock,
                                                 const EventLogOptions& options = {});

}  // namespace shoal
