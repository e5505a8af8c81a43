#pragma once
// How microbatches travel between stages (router/). A holder is the trainer for stage 0, else a peer of the stage
// before.
#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "transport/message_fields.h"

namespace shoal {

enum class ForwardKind : std::uint8_t {
  kTrain = 0,
  kEvaluate = 1,  // forward only, on anchors: those of Forward.versions; nothing counted
};
enum class BusyReason : std::uint8_t {
  kNoCredit = 0,
  kClosed = 1,
  kLeaving = 2,
  kNotServing = 3,
  kCrowded = 4,
  kMalformed = 5,
  kFailed = 6,
  kBehind = 7,  // kEvaluate: the anchor here is older than the one that is asked for
  kAhead = 8,   // kEvaluate: it is newer
};
enum class CommitState : std::uint8_t { kCommitted = 0, kMerged = 1, kGone = 2, kDropped = 3 };
// What a hop waits for; a change restarts its timer.
enum class HopPhase : std::uint8_t {
  kForward = 0,  // arriving, queued, computing
  kBelow = 1,    // waits for a later stage
  kBackward = 2,
  kStranded = 3,  // below, but nobody of the next stage answers it: another replica is asked
};

// ---- down: the microbatch, and what a peer answers ----

struct GradientHint {
  Session session;
  EntryName entry_name;
  SHOAL_FIELDS(session, entry_name)
};

// Holder -> peer: compute your stage of this microbatch. Frames: text tokens, then the activation (not to stage 0).
struct Forward {
  MicrobatchId microbatch;
  SampleId sample;
  std::uint32_t epoch = 0;  // data epoch
  ForwardKind kind = ForwardKind::kTrain;
  StepId step;  // rule allreduce: the window it belongs to; 0 elsewhere
  Lease lease;
  std::vector<Session> above;        // sessions it came through, trainer first, sender last
  std::optional<GradientHint> hint;  // a gradient for it waits there
  StageId stage;                     // stage it is meant for
  std::vector<Version> versions;     // kEvaluate: the anchor at which each stage is to answer, from stage 0; none: any
  SHOAL_FIELDS(microbatch, sample, epoch, kind, step, lease, above, hint, stage, versions)
};

// Re-pointed peer -> peer where a gradient waits: I am this entry's holder now.
struct Take {
  MicrobatchId microbatch;
  Lease lease;
  EntryName entry_name;
  std::vector<Session> above;
  SHOAL_FIELDS(microbatch, lease, entry_name, above)
};

// Peer -> holder: I cannot serve this Forward, or its job failed.
struct Busy {
  Lease lease;
  BusyReason reason = BusyReason::kNoCredit;
  std::uint32_t queue_ms = 0;
  SHOAL_FIELDS(lease, reason, queue_ms)
};

// Peer -> holder: the microbatch lives here already; keep your frames.
struct Have {
  Lease lease;
  SHOAL_FIELDS(lease)
};

// Peer -> holder: the entry under this lease ended, or I do not know it.
struct Gone {
  Lease lease;
  SHOAL_FIELDS(lease)
};

// Peer -> holder: the frames that came need a base that is not here.
struct NeedKeyFrame {
  Lease lease;
  SHOAL_FIELDS(lease)
};

struct ProgressItem {
  Lease lease;
  HopPhase phase = HopPhase::kForward;
  SHOAL_FIELDS(lease, phase)
};

// Peer -> holder: where its entries stand; at a change (batched) and every beat, so that a holder can tell a peer that
// waits for a later stage from one that is silent.
struct Progress {
  std::vector<ProgressItem> items;
  std::uint32_t queue_ms = 0;
  std::uint32_t job_ms = 0;  // the device's present job runs for so long; 0: none
  SHOAL_FIELDS(items, queue_ms, job_ms)
};

// ---- up: the gradient ----

// By what the trainer sees that an entry of a path is that of the session it names (common/crypto/path_tag.h).
using PathTag = StrongInt<struct PathTagTag, std::uint64_t>;

// Peer -> holder: the microbatch is counted here and below. Frames: the gradient (none to the trainer, none for
// kEvaluate).
struct Gradient {
  Lease lease;
  MicrobatchId microbatch;
  std::vector<EntryName> path;  // from the sender's stage to the last; empty for kEvaluate
  // One for each of the path's entries: its session alone can make it, and the trainer alone can check it.
  std::vector<PathTag> tags;
  double loss_sum = 0;  // found by the last stage: sum over targets, nats
  std::uint64_t targets = 0;
  // What a microbatch takes at the sender: computing, or its lines where they are slower.
  std::uint32_t forward_us = 0, backward_us = 0;
  SHOAL_FIELDS(lease, microbatch, path, tags, loss_sum, targets, forward_us, backward_us)
};

// ---- claims ----

// Holder -> peer: I do not want this entry any more.
struct Release {
  Lease lease;
  SHOAL_FIELDS(lease)
};

struct Renewal {
  Lease lease;
  bool want = false;  // its gradient has not come: send it again if it was lost
  SHOAL_FIELDS(lease, want)
};

// By a trainer: every microbatch below it is decided.
struct Low {
  std::uint64_t trainer = 0;
  std::uint64_t low = 0;
  SHOAL_FIELDS(trainer, low)
};

// Holder -> peer, batched: I still want these. The trainer also to every member, for its low-water mark.
struct Renew {
  std::vector<Renewal> leases;
  std::vector<Low> lows;
  SHOAL_FIELDS(leases, lows)
};

// Peer -> the holder above its holder, and the trainer: I have this, and its holder is silent (none: nobody is).
struct Waiting {
  MicrobatchId microbatch;
  EntryName entry_name;
  Session silent;
  SHOAL_FIELDS(microbatch, entry_name, silent)
};

// Holder -> its youngest child: a gradient for this waits there.
struct Hint {
  Lease lease;
  GradientHint where;
  SHOAL_FIELDS(lease, where)
};

// ---- the decision ----

struct CommitItem {
  MicrobatchId microbatch;
  std::vector<EntryName> path;  // from the receiver's stage down
  SHOAL_FIELDS(microbatch, path)
};

// Trainer -> every peer of a path: this path counts, and no other. That peer -> the child that won: ask the trainer.
struct Commit {
  std::vector<CommitItem> items;
  std::vector<Low> lows;
  std::uint64_t run_targets = 0;
  SHOAL_FIELDS(items, lows, run_targets)
};

struct CommitAckItem {
  MicrobatchId microbatch;
  EntryName entry_name;
  CommitState state = CommitState::kCommitted;
  SHOAL_FIELDS(microbatch, entry_name, state)
};

// Peer -> sender of the Commit: what became of these here.
struct CommitAck {
  std::vector<CommitAckItem> items;
  SHOAL_FIELDS(items)
};

}  // namespace shoal
