#pragma once
// `--events FILE`: what happened in this process, as JSON lines that a stranger can audit (docs/EVENTS.md names every
// event and field). One line is one write(2) on an O_APPEND descriptor, nothing is kept in the process: what a killed
// process wrote is all there.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/event_loop.h"
#include "common/ids.h"
#include "common/result.h"
#include "stages/executor.h"
#include "transport/messages.h"

namespace shoal {

// Of the writing process; on every line.
struct EventIdentity {
  std::string role;  // "peer", "trainer" (also the authority, which lives with it), "solo"
  RunId run;
  PeerId peer;
  Session session;
};

// One line; what is not set is not written.
struct EventRecord {
  std::string event;
  std::optional<MicrobatchId> microbatch{};
  std::optional<StageId> stage{};
  std::optional<Session> about{};  // the session it is about, when not the writer's own
  std::optional<EntryName> entry_name{};
  std::optional<Lease> lease{};
  std::optional<WindowSlot> window{};
  std::optional<RoundId> round{};
  std::optional<Version> version{};
  std::optional<Digest> digest{};
  std::optional<CountTag> tag{};
  std::optional<StepId> step{};
  std::optional<std::vector<EntryName>> entries{};  // a path (stage order) or a window's entries
  std::optional<std::vector<Secured>> secured{};    // a round's entries, per member
  std::string cause{};
  std::optional<double> loss{};  // nats a target
  std::optional<std::uint64_t> targets{};
  std::vector<std::pair<std::string, std::string>> more{};  // further texts, by name
};

// The records whose fields the audit depends on.
EventRecord event_of(const RoundCommit& commit);  // "round_commit", written by the authority
EventRecord commit_event(const MicrobatchId& microbatch, std::vector<EntryName> path, double loss,
                         std::uint64_t targets);
EventRecord anchor_event(StageId stage, Version version, CountTag tag, const Digest& digest);

// The line with its newline. Pure.
std::string event_line(const EventIdentity& identity, WallTime time, const EventRecord& record);

// Thread: one at a time (the loop). Never fails for the caller.
class EventLog {
 public:
  virtual ~EventLog() = default;
  virtual void write(const EventRecord& record) = 0;
  virtual void set_session(const Session& session) = 0;  // the process goes on as a new one
};

std::unique_ptr<EventLog> make_silent_event_log();
// Appends to `path` (created 0644). Behind a line that an earlier process left torn it writes "reopened". A write that
// fails is reported once in the log of the process, and the count of lines lost stands in the next line that can be
// written
// ("missing"). Borrows the clock. ERRORS: kMissing (no such folder), kIo.
Result<std::unique_ptr<EventLog>> open_event_log(const std::string& path, EventIdentity identity, const Clock& clock);

// Back from the texts of a line. ERRORS: kMalformed.
Result<Session> parse_session(std::string_view text);
Result<EntryName> parse_entry_name(std::string_view text);
Result<MicrobatchId> parse_microbatch(std::string_view text);

}  // namespace shoal
