#pragma once
// How the replicas of a stage agree on a version (sync/; docs/ROUNDS.md).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "transport/message_fields.h"
#include "transport/messages_hop.h"

namespace shoal {

// Authority -> members, in front of the RoundOpen of an `allreduce` step: these microbatches made it.
struct Step {
  StepId step;
  std::uint64_t targets = 0;
  std::uint64_t run_targets = 0;
  std::vector<CommitItem> winners;  // path: all stages
  SHOAL_FIELDS(step, targets, run_targets, winners)
};

// Authority -> members: contribute to this round.
struct RoundOpen {
  StageId stage;
  RoundId round;
  std::uint8_t rule = 0;
  StepId step;
  Version base;
  std::vector<Session> members;
  std::uint32_t budget_ms = 0;
  bool last = false;
  std::uint64_t run_targets = 0;
  std::uint32_t fragment = 0;  // of the stage's line (authority/stage_line.h): its only one is all of the parameters
  std::vector<std::uint16_t> owners;  // of the parts, by place among `members`, ascending
  SHOAL_FIELDS(stage, round, rule, step, base, members, budget_ms, last, run_targets, fragment, owners)
};

// Member -> member: a piece of a contribution, or of the sum. Frame: the part, in bytes of the rule.
struct RoundPart {
  StageId stage;
  RoundId round;
  std::uint8_t phase = 0;  // 0: to the part's owner; 1: the sum, to all
  std::uint16_t part = 0;
  std::uint64_t weight = 0;
  CountTag tag = 0;
  SHOAL_FIELDS(stage, round, phase, part, weight, tag)
};

enum class ReportKind : std::uint8_t {
  kContributed = 0,  // weight, tag and entries of the sender alone
  kWaiting = 1,      // no byte of the round moves here, and `silent` is waited for
  kAgreed = 2,       // on `digest`; weight and tag of the sum
  kFailed = 3,       // `reason`; `silent`: a part of it did not come (the sender: it was not ready within the budget)
};

// Member -> authority: I contributed; then: I agree on this digest, or it failed.
struct RoundReport {
  StageId stage;
  RoundId round;
  ReportKind kind = ReportKind::kContributed;
  Digest digest;
  std::uint64_t weight = 0;
  CountTag tag = 0;
  std::vector<std::uint64_t> entries;  // serials of the sender's own entries
  std::optional<Session> silent;
  std::optional<Session> malformed;  // whose part cannot be used
  std::string reason;
  bool sum = false;  // what did not come of `silent` is a sum and no piece: that one may wait itself
  SHOAL_FIELDS(stage, round, kind, digest, weight, tag, entries, silent, malformed, reason, sum)
};

struct Secured {
  Session session;
  std::vector<std::uint64_t> serials;
  SHOAL_FIELDS(session, serials)
};

// Authority -> members: the round counts; this is the anchor, and these are the entries in it. With `back_to` no round
// made it: the stage lost all who held its newest version, and the new one has the content of that earlier version.
struct RoundCommit {
  StageId stage;
  RoundId round;
  Version version;
  Digest digest;
  CountTag tag = 0;  // sum over the entries that the round secures (not over the whole anchor)
  StepId step;
  std::vector<Secured> secured;
  std::optional<Version> back_to = {};  // below `version`
  SHOAL_FIELDS(stage, round, version, digest, tag, step, secured, back_to)
};

// Authority -> members: the round does not count.
struct RoundAbandon {
  StageId stage;
  RoundId round;
  std::string reason;
  SHOAL_FIELDS(stage, round, reason)
};

}  // namespace shoal
