#pragma once
// Judges the counting of a run from the event logs of all its processes, killed ones included (docs/EVENTS.md). Trusts
// no process: what the trainer, the authority and the peers wrote must fit together.
//
// For every committed microbatch and stage exactly one of these must hold: secured by one committed round, or lost as
// lost, or (only while the run has not ended) undecided. And per stage, tags are sums modulo 2^64 of
// count_tag(microbatch): the anchor's tag at a version equals the sum over what the rounds up to it secured; at the
// end, with what was lost, it equals the sum over all commits.
//
// Pure apart from read_events(). Memory: about 200 bytes an event.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "transport/messages.h"

namespace shoal {

inline constexpr std::size_t kViolationsShownMax = 50;
inline constexpr std::size_t kEventFileBytesMax = std::size_t{4} << 30;

// What the audit reads of a line.
struct AuditEvent {
  std::string event, role, cause, state;
  std::string where;          // "file:line"
  std::uint64_t missing = 0;  // lines before this one that the disk refused
  Session session;            // the writer's
  std::optional<Session> about;
  std::optional<MicrobatchId> microbatch;
  std::optional<StageId> stage;
  std::optional<EntryName> entry_name;
  std::optional<RoundId> round;
  std::optional<Version> version;
  std::optional<CountTag> tag;
  std::optional<std::string> digest;
  std::vector<EntryName> entries;
  std::vector<Secured> secured;
};

struct EventFiles {
  std::vector<AuditEvent> events;  // per file in order
  std::uint64_t files = 0, lines = 0;
  std::uint64_t torn = 0;            // last lines of killed processes, and lines that a refused write cut
  std::uint64_t missing = 0;         // lines that processes could not write, by their own count
  std::vector<std::string> damaged;  // lines that no torn write explains
  std::vector<std::string> runs;     // of the lines; more than one is a violation
};

struct StageVerdict {
  std::uint64_t commits = 0, secured = 0, lost = 0, undecided = 0, silent = 0, counted_twice = 0;
  std::uint64_t rounds = 0, version = 0;
  std::uint64_t anchors = 0;  // anchor lines compared with the rounds
  bool tag_fits = true;
};

struct AuditReport {
  bool clean() const { return violation_count == 0; }
  bool ended = false;  // a trainer wrote that the run is over
  std::uint64_t issued = 0, committed = 0, unfinished = 0;
  // (microbatch, stage) pairs:
  std::uint64_t secured = 0, lost = 0, undecided = 0, silent = 0, counted_twice = 0;
  std::uint64_t branches = 0;       // entries beyond the first of a (microbatch, stage)
  std::uint64_t undone = 0;         // counted entries that were taken out again
  std::uint64_t answered_gone = 0;  // COMMITs
  std::uint64_t sessions = 0, sessions_over = 0, rounds = 0;
  std::map<std::uint16_t, StageVerdict> stages;
  std::uint64_t violation_count = 0;
  std::vector<std::string> violations;  // the first kViolationsShownMax
  std::uint64_t files = 0, lines = 0, torn = 0, missing = 0;
};

// All *.jsonl files of the folder. ERRORS: kMissing (no folder, no such file), kIo.
Result<EventFiles> read_events(const std::string& folder);
// One file's text, appended to `files`.
void read_event_text(std::string_view text, const std::string& origin, EventFiles& files);

AuditReport audit(const EventFiles& files);

std::string audit_table(const AuditReport& report);  // for people
std::string audit_json(const AuditReport& report);   // one object, schema "shoal.audit/1"

}  // namespace shoal
