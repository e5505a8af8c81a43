#pragma once
// Judges the counting of a run from the event logs of all its processes, killed ones included (docs/EVENTS.md). Trusts
// no process: what the trainer, the authority and the peers wrote must fit together.
//
// For every committed microbatch and stage exactly one of these must hold: secured by one committed round, or taken
// back by a restore behind that round, or lost by name, or (only while the run has not ended) undecided. And per stage,
// tags are sums modulo 2^64 of count_tag(microbatch): the anchor's tag at a version equals the sum over what the rounds
// up to it secured and no restore took back; at the end, with what was lost and taken back, it equals the sum over all
// commits.
//
// What lines say against each other is a violation. What no line says is one too, unless lines are known to be missing
// where it would stand: then nobody can tell, and the verdict is incomplete.
//
// Files are read in pieces, the trainer's first, so that every line of a peer is judged when it is read. Memory: what
// was committed (about 200 bytes for each stage of a microbatch), and of one peer's file what is open there.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "events/delay.h"
#include "events/event_lines.h"

namespace shoal {

inline constexpr std::size_t kFindingsShownMax = 50;

enum class AuditVerdict : std::uint8_t { kClean, kIncomplete, kViolated };
std::string_view name_of(AuditVerdict verdict);  // "clean", "incomplete", "violated"

struct StageVerdict {
  std::uint64_t commits = 0, secured = 0, taken_back = 0, lost = 0, undecided = 0, silent = 0, counted_twice = 0;
  std::uint64_t rounds = 0, restores = 0, version = 0;
  std::uint64_t anchors = 0;        // anchor lines compared with the rounds
  std::uint64_t newest_anchor = 0;  // the newest version that one of them is at
  bool tag_fits = true;
  // Those of the gradients in inner steps, as the peers wrote: `delays` of lines `stepped` (diloco), and of lines
  // `anchor` where a round is the step (allreduce, warm steps). Counts of targets; not judged.
  DelayHistogram delays_of_windows, delays_of_rounds;
  std::uint64_t steps_of_windows = 0, steps_of_rounds = 0;  // such lines
  std::uint64_t members_max = 0;                            // of one round
};

struct AuditReport {
  AuditVerdict verdict() const {
    if (violation_count > 0) return AuditVerdict::kViolated;
    return incomplete_count > 0 ? AuditVerdict::kIncomplete : AuditVerdict::kClean;
  }
  bool clean() const { return verdict() == AuditVerdict::kClean; }
  bool ended = false;  // a trainer wrote that the run is over
  std::uint64_t issued = 0, committed = 0, unfinished = 0;
  std::uint64_t committed_targets = 0;
  // (microbatch, stage) pairs:
  std::uint64_t secured = 0, taken_back = 0, lost = 0, undecided = 0, silent = 0, counted_twice = 0;
  std::uint64_t branches = 0;       // entries beyond the first of a (microbatch, stage)
  std::uint64_t undone = 0;         // counted entries that were taken out again
  std::uint64_t answered_gone = 0;  // committed entries whose peer had them no more
  std::uint64_t dropped_late = 0;   // and those whose gradient came too late there; they are lost by that name
  std::uint64_t sessions = 0, sessions_over = 0, rounds = 0, restores = 0;
  std::map<std::uint16_t, StageVerdict> stages;
  std::uint64_t violation_count = 0, incomplete_count = 0;
  std::vector<std::string> violations;  // the first kFindingsShownMax
  std::vector<std::string> incomplete;  // gaps by name and what stands open because of them; as many
  std::uint64_t files = 0, lines = 0;
  std::uint64_t torn = 0;     // last lines of killed processes, and lines that a refused write cut
  std::uint64_t missing = 0;  // lines that processes could not write, by their own count
};

// All *.jsonl files of the folder. `progress` is told how many bytes of how many are read, after each piece. ERRORS:
// kMissing (no folder, no such file), kIo.
Result<AuditReport> audit_folder(const std::string& folder, const ReadProgress& progress = {});
AuditReport audit_texts(const std::map<std::string, std::string>& files);  // by name

// Which microbatches each peer had accepted for good: in a path that won, and named by a round that no stage went back
// from. Learned of what the audit judges; only its verdict says whether it may be believed.
struct AcceptedWork {
  using OfStage = std::map<std::uint64_t, std::uint64_t>;  // targets by the microbatch's serial
  AuditReport audit{};
  RunId run{};
  std::map<std::uint64_t, std::string> names{};  // by its owner, as it joined last; of those that gave one
  std::map<std::uint64_t, std::map<std::uint16_t, OfStage>> peers{};  // by the first 8 bytes of a key, and by stage
};
// ERRORS: audit_folder()'s; kIo (the rest of a file cannot be read); kInput (no line of a launching process is there,
// or lines of two runs).
Result<AcceptedWork> accepted_work(const std::string& folder, const ReadProgress& progress = {});
std::string ranges_text(const AcceptedWork::OfStage& work);  // its serials: "0-17,19"

std::string audit_table(const AuditReport& report);  // for people
std::string audit_json(const AuditReport& report);   // one object, schema "shoal.audit/1"

}  // namespace shoal
