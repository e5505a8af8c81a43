#pragma once
// Every message of the protocol as a plain struct. Packed as msgpack arrays in field order (transport/envelope.h); fields are only ever
// appended. Run, protocol version and session of the sender are settled once per connection by Hello, not repeated here.
// Who sends what when: docs/PROTOCOL.md, "Messages". Times are remaining budgets in milliseconds, never wall time.
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "common/ids.h"

#define SHOAL_FIELDS(...)                               \
  auto fields() { return std::tie(__VA_ARGS__); }       \
  auto fields() const { return std::tie(__VA_ARGS__); }

namespace shoal {

enum class PeerRole : std::uint8_t { kPeer = 0, kTrainer = 1, kObserver = 2 };  // kTrainer: the launching process (authority and trainer)
enum class ForwardKind : std::uint8_t { kTrain = 0, kEvaluate = 1 };            // evaluate: forward only, at the anchors, nothing counted
enum class BusyReason : std::uint8_t { kNoCredit = 0, kClosed = 1, kLeaving = 2, kNotServing = 3, kCrowded = 4, kMalformed = 5, kFailed = 6 };
enum class ReleaseWhy : std::uint8_t { kLost = 0, kLate = 1, kCrowded = 2, kClosed = 3, kOver = 4 };
enum class CommitState : std::uint8_t { kCommitted = 0, kMerged = 1, kGone = 2, kFenced = 3 };

// ---- connection ----
struct Hello {
  std::uint32_t protocol = 0;
  RunId run;
  Session session;
  PeerRole role = PeerRole::kPeer;
  std::vector<std::string> addresses;  // where the sender can be dialled; empty: cannot
  SHOAL_FIELDS(protocol, run, session, role, addresses)
};

// ---- travel between stages (router/) ----
struct GradientHint { Session session; EntryName entry_name; SHOAL_FIELDS(session, entry_name) };

struct Forward {                       // frames: tokens, then the activation (not to stage 0)
  MicrobatchId microbatch;
  SampleId sample;
  std::uint32_t epoch = 0;             // data epoch
  ForwardKind kind = ForwardKind::kTrain;
  StepId step;                         // rule allreduce: the window it belongs to; 0 elsewhere
  Lease lease;
  std::vector<Session> above;          // sessions it came through, trainer first, sender last
  std::uint64_t low = 0;               // of microbatch.trainer
  std::optional<GradientHint> hint;    // a gradient for it waits there
  StageId stage;                       // stage it is meant for
  SHOAL_FIELDS(microbatch, sample, epoch, kind, step, lease, above, low, hint, stage)
};
struct Take { MicrobatchId microbatch; Lease lease; EntryName entry_name; std::vector<Session> above;
              SHOAL_FIELDS(microbatch, lease, entry_name, above) };
struct Busy { Lease lease; BusyReason reason = BusyReason::kNoCredit; std::uint32_t queue_ms = 0; SHOAL_FIELDS(lease, reason, queue_ms) };
struct Have { Lease lease; SHOAL_FIELDS(lease) };
struct Gone { Lease lease; SHOAL_FIELDS(lease) };
struct NeedKeyFrame { Lease lease; SHOAL_FIELDS(lease) };  // peer -> holder: the frames that came need a base that is not here
struct Gradient {                      // frames: the gradient (none to the trainer, none for kEvaluate)
  Lease lease;
  MicrobatchId microbatch;
  std::vector<EntryName> path;             // from the sender's stage to the last; empty for kEvaluate
  double loss_sum = 0;                 // found by the last stage: sum over targets, nats
  std::uint64_t targets = 0;
  std::uint32_t forward_us = 0, backward_us = 0;  // at the sender: computing
  SHOAL_FIELDS(lease, microbatch, path, loss_sum, targets, forward_us, backward_us)
};
struct Release { Lease lease; ReleaseWhy why = ReleaseWhy::kOver; SHOAL_FIELDS(lease, why) };
struct Renewal { Lease lease; bool want = false; SHOAL_FIELDS(lease, want) };
// Peer -> holder: where its entries stand; at a change (batched) and every beat, so that a holder can tell a peer that waits for a later stage
// from one that is silent. `phase` restarts the hop's timer: arriving and forward, below (waits for a later stage), backward.
enum class HopPhase : std::uint8_t { kForward = 0, kBelow = 1, kBackward = 2 };
struct ProgressItem { Lease lease; HopPhase phase = HopPhase::kForward; SHOAL_FIELDS(lease, phase) };
struct Progress { std::vector<ProgressItem> items; std::uint32_t queue_ms = 0; SHOAL_FIELDS(items, queue_ms) };
struct Low { std::uint64_t trainer = 0; std::uint64_t low = 0; SHOAL_FIELDS(trainer, low) };
struct Renew { std::vector<Renewal> leases; std::vector<Low> lows; SHOAL_FIELDS(leases, lows) };
struct Waiting { MicrobatchId microbatch; EntryName entry_name; Session silent; SHOAL_FIELDS(microbatch, entry_name, silent) };
struct Hint { Lease lease; GradientHint where; SHOAL_FIELDS(lease, where) };
struct CommitItem { MicrobatchId microbatch; std::vector<EntryName> path; SHOAL_FIELDS(microbatch, path) };  // from the receiver's stage down
struct Commit { std::vector<CommitItem> items; std::vector<Low> lows; double run_loss = 0; std::uint64_t run_targets = 0;
                SHOAL_FIELDS(items, lows, run_loss, run_targets) };
struct CommitAckItem { MicrobatchId microbatch; EntryName entry_name; CommitState state = CommitState::kCommitted; SHOAL_FIELDS(microbatch, entry_name, state) };
struct CommitAck { std::vector<CommitAckItem> items; SHOAL_FIELDS(items) };

// ---- membership (sync/) ----
struct JoinRequest { std::optional<StageId> wish; std::optional<StageId> held_stage; Version held_version; Digest held_digest;
                     double rate = 0; std::string device; std::vector<std::string> addresses;  // where others can dial the sender
                     SHOAL_FIELDS(wish, held_stage, held_version, held_digest, rate, device, addresses) };
struct JoinAnswer { bool accepted = false; StageId stage; bool initialise = false; std::string reason;
                    bool unreachable = false;  // not accepted, because nobody can dial the addresses of the request: it may ask again
                    SHOAL_FIELDS(accepted, stage, initialise, reason, unreachable) };  // initialise: the stage never secured a round
struct Member { Session session; PeerId peer; std::vector<std::string> addresses; bool serving = false; Version version;
                SHOAL_FIELDS(session, peer, addresses, serving, version) };
struct StageMembers { StageId stage; Epoch epoch; Version version; Digest digest; bool secured = false; RoundId round;
                      std::vector<Member> members; SHOAL_FIELDS(stage, epoch, version, digest, secured, round, members) };
struct MemberList { RunId run; Epoch epoch; std::vector<StageMembers> stages; SHOAL_FIELDS(run, epoch, stages) };
struct Members { std::vector<std::uint8_t> body; std::vector<std::uint8_t> signature;  // body = packed MemberList; Ed25519 by the run's key
                 SHOAL_FIELDS(body, signature) };
struct Beat {                          // peer -> authority, every second and at once when `serving` changes
  StageId stage; Version version; bool serving = false; bool leaving = false;
  std::uint64_t inner_steps = 0;
  std::uint64_t settled_targets = 0;   // in the parameters, in no committed round
  std::uint64_t accepted = 0, counted = 0, undone = 0, window_wait = 0;
  std::uint32_t entries = 0, queue_ms = 0;
  double rate = 0;                     // targets per second
  Epoch list_epoch;                    // newest list seen
  std::uint64_t progress = 0;          // rises with finished device work: a hung peer's stands still
  SHOAL_FIELDS(stage, version, serving, leaving, inner_steps, settled_targets, accepted, counted, undone, window_wait, entries, queue_ms, rate, list_epoch, progress)
};
struct BeatAck { Epoch list_epoch; std::uint64_t run_targets = 0; double run_loss = 0; std::uint64_t run_step = 0;
                 SHOAL_FIELDS(list_epoch, run_targets, run_loss, run_step) };
struct Fenced { Session session; std::string reason; SHOAL_FIELDS(session, reason) };
struct Leave { bool round_wanted = false; SHOAL_FIELDS(round_wanted) };   // peer -> authority
struct Goodbye { SHOAL_FIELDS() };                                        // authority -> peer: may go; peer -> authority: gone
struct End { std::string reason; SHOAL_FIELDS(reason) };                  // authority -> peers: the run is over, exit 0

// ---- rounds (sync/) ----
struct Step { StepId step; std::uint64_t targets = 0; std::uint64_t run_targets = 0; std::vector<CommitItem> winners;  // path: all stages
              double run_loss = 0; SHOAL_FIELDS(step, targets, run_targets, winners, run_loss) };
struct RoundOpen { StageId stage; RoundId round; std::uint8_t rule = 0; StepId step; Version base; std::vector<Session> members;
                   std::uint32_t budget_ms = 0; bool last = false; std::uint64_t run_targets = 0;
                   std::uint32_t fragment = 0;  // of the parameters, that the round is about; 0: all
                   SHOAL_FIELDS(stage, round, rule, step, base, members, budget_ms, last, run_targets, fragment) };
struct RoundPart { StageId stage; RoundId round; std::uint8_t phase = 0; std::uint16_t part = 0; std::uint64_t weight = 0; CountTag tag = 0;
                   SHOAL_FIELDS(stage, round, phase, part, weight, tag) };  // frame: the part, in bytes of the rule. phase 0: to its owner, 1: sum to all
struct RoundReport { StageId stage; RoundId round; bool ready = false; Digest digest; std::uint64_t weight = 0; CountTag tag = 0;
                     std::vector<std::uint64_t> entries; std::optional<Session> silent; std::string reason;
                     SHOAL_FIELDS(stage, round, ready, digest, weight, tag, entries, silent, reason) };  // entries: serials of the sender's own entries
struct Secured { Session session; std::vector<std::uint64_t> serials; SHOAL_FIELDS(session, serials) };
// tag: sum over the entries that the round secures (not over the whole anchor).
struct RoundCommit { StageId stage; RoundId round; Version version; Digest digest; CountTag tag = 0; StepId step; std::vector<Secured> secured;
                     SHOAL_FIELDS(stage, round, version, digest, tag, step, secured) };
struct RoundAbandon { StageId stage; RoundId round; std::string reason; SHOAL_FIELDS(stage, round, reason) };

// ---- state transfer (sync/) ----
struct StateQuery { StageId stage; Version version; SHOAL_FIELDS(stage, version) };
struct StateOffer { StageId stage; Version version; bool has = false; Digest root; std::uint64_t bytes = 0; std::uint32_t chunks = 0; Digest digest;
                    SHOAL_FIELDS(stage, version, has, root, bytes, chunks, digest) };  // root: BLAKE2b tree over 1 MiB chunks
struct ChunkQuery { StageId stage; Version version; std::uint32_t index = 0; SHOAL_FIELDS(stage, version, index) };
struct Chunk { StageId stage; Version version; std::uint32_t index = 0; bool has = false; SHOAL_FIELDS(stage, version, index, has) };  // frame: bytes

// ---- directory (dht/) ----
struct ManifestQuery { SHOAL_FIELDS() };
struct Manifest { std::string body; std::vector<std::uint8_t> signature; SHOAL_FIELDS(body, signature) };  // RUN.toml's canonical text
struct PeersQuery { SHOAL_FIELDS() };
struct Peers { std::vector<std::string> records; SHOAL_FIELDS(records) };  // signed records as they stand in the DHT

// ---- link (transport/) ----
struct Ping { std::uint64_t nonce = 0; SHOAL_FIELDS(nonce) };
struct Pong { std::uint64_t nonce = 0; SHOAL_FIELDS(nonce) };
struct ByteCredit { std::uint64_t bytes = 0, consumed = 0; SHOAL_FIELDS(bytes, consumed) };  // may be sent in addition; taken from this link so far
struct DropTransfer { std::uint64_t transfer = 0; SHOAL_FIELDS(transfer) };    // receiver -> sender: frames not wanted; sender -> receiver: no more will come.
// The end with the smaller PeerId numbers its transfers 1, 3, 5 ..., the other 2, 4, 6 ...: a number names one direction.

// The index in this list is the type's number on the wire: append only.
using Message = std::variant<Hello, Ping, Pong, ByteCredit, DropTransfer,                                             // 0-4
                             Forward, Take, Busy, Have, Gone, Gradient, Release, Renew, Waiting, Hint, Commit, CommitAck,  // 5-16
                             JoinRequest, JoinAnswer, Members, Beat, BeatAck, Fenced, Leave, Goodbye, End,              // 17-25
                             Step, RoundOpen, RoundPart, RoundReport, RoundCommit, RoundAbandon,                       // 26-31
                             StateQuery, StateOffer, ChunkQuery, Chunk, ManifestQuery, Manifest, PeersQuery, Peers,     // 32-39
                             Progress, NeedKeyFrame>;                                                                  // 40-41

std::string_view name_of(const Message& message);  // "Forward"

}  // namespace shoal
