#pragma once
// Taking part in a run (authority/): joining, the signed member list, beats, leaving.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "transport/message_fields.h"
#include "transport/whereabouts.h"

namespace shoal {

// A state that a peer has which does not serve: of a session before, or in a checkpoint.
struct HeldState {
  Version version;
  Digest digest;
  bool operator==(const HeldState&) const = default;
  SHOAL_FIELDS(version, digest)
};

// Peer -> authority: let me take part.
struct JoinRequest {
  std::optional<StageId> wish;
  std::optional<StageId> held_stage;  // of the states that the sender kept
  std::vector<HeldState> held;        // newest first
  std::string device;
  Whereabouts whereabouts;  // where others can dial the sender
  std::string name;         // what its owner calls it (common/peer_name.h); empty: nothing
  SHOAL_FIELDS(wish, held_stage, held, device, whereabouts.addresses, name)
};

// Authority -> peer: your stage, or why not.
struct JoinAnswer {
  bool accepted = false;
  StageId stage;
  bool initialise = false;  // the stage never secured a round
  std::string reason;
  bool unreachable = false;  // not accepted for now, since it cannot be reached as it must: it may ask again
  bool later = false;        // not accepted yet, and nothing is wrong with how it is reached: it asks again
  Digest path_key;           // accepted: by it the session tags its entries in paths (common/crypto/path_tag.h)
  SHOAL_FIELDS(accepted, stage, initialise, reason, unreachable, later, path_key)
};

struct Member {
  Session session;
  PeerId peer;
  Whereabouts whereabouts;
  bool serving = false;
  Version version;
  SHOAL_FIELDS(session, peer, whereabouts.addresses, serving, version, whereabouts.reach)
};

struct StageMembers {
  StageId stage;
  Epoch epoch;
  Version version;
  Digest digest;
  bool secured = false;
  RoundId round;
  StepId step;  // allreduce, warm steps: the newest that a committed round made; beside the version, for a stage may go
                // back
  std::vector<Member> members;
  SHOAL_FIELDS(stage, epoch, version, digest, secured, round, step, members)
};

// A process that joins two connections which only dial out (transport/relay/).
struct RelayPlace {
  std::string address;     // "host:port"
  std::uint32_t kbit = 0;  // what it carries a second; 0: not known
  bool operator==(const RelayPlace&) const = default;
  SHOAL_FIELDS(address, kbit)
};

struct MemberList {
  RunId run;
  Epoch epoch;
  std::vector<StageMembers> stages;
  std::vector<RelayPlace> relays;  // at most limits::kRelaysMax
  SHOAL_FIELDS(run, epoch, stages, relays)
};

// Authority -> member: the whole member list of now; when it joined, and when it asked.
struct Members {
  std::vector<std::uint8_t> body;       // a packed MemberList
  std::vector<std::uint8_t> signature;  // Ed25519 by the run's key
  SHOAL_FIELDS(body, signature)
};

struct StageAnchor {
  Version version;
  Digest digest;
  bool secured = false;
  RoundId round;
  StepId step;
  SHOAL_FIELDS(version, digest, secured, round, step)
};

struct MemberChange {
  Session session;
  bool serving = false;
  Version version;
  SHOAL_FIELDS(session, serving, version)
};

// A stage's part of a ListChange, to be applied in the order of the fields.
struct StageChange {
  StageId stage;
  Epoch epoch;
  std::optional<StageAnchor> anchor;  // members that stood at the version of before move to this one
  std::vector<Session> gone;
  std::vector<Member> joined;
  std::vector<MemberChange> changed;
  SHOAL_FIELDS(stage, epoch, anchor, gone, joined, changed)
};

// What makes the list of `epoch` out of the list of `base`. An id tells lists of one epoch apart: it is the first 8
// bytes of the BLAKE2b-256 of the packed MemberList, little-endian.
struct ListChange {
  Epoch base;
  std::uint64_t base_id = 0;
  Epoch epoch;
  std::uint64_t id = 0;
  std::vector<StageChange> stages;                // those in which something changed
  std::optional<std::vector<RelayPlace>> relays;  // all that there are, where these changed
  SHOAL_FIELDS(base, base_id, epoch, id, stages, relays)
};

// Authority -> members: what changed of the member list.
struct MembersChange {
  std::vector<std::uint8_t> body;       // a packed ListChange
  std::vector<std::uint8_t> signature;  // Ed25519 by the run's key (authority/list_change.h)
  SHOAL_FIELDS(body, signature)
};

// Member -> authority: I miss a list; mine is this one (0 and 0: none).
struct MembersQuery {
  Epoch epoch;
  std::uint64_t id = 0;
  SHOAL_FIELDS(epoch, id)
};

// Member -> authority: I have no link to this session and cannot make one. Authority -> that one: the session named
// here wants a link to you. It dials what the list says of it, relays included, and nothing else.
inline constexpr double kKnocksPerSecond = 64;  // of one member
struct Knock {
  Session session;
  SHOAL_FIELDS(session)
};

// Member -> authority: dial me here once more. Other hosts than its own are dialled for frames of kDialPaymentBytes.
struct ReachQuery {
  Whereabouts whereabouts;
  SHOAL_FIELDS(whereabouts.addresses)
};

// Authority -> member: what came of it.
struct ReachAnswer {
  Reach reach = Reach::kNone;
  std::string host;    // that its link comes from; empty: not known
  std::string reason;  // what became of the addresses that did not answer
  SHOAL_FIELDS(reach, host, reason)
};

// The newest checkpoint on a member's own disk.
struct DiskState {
  Version version;
  std::uint32_t age_s = 0;
  bool operator==(const DiskState&) const = default;
  SHOAL_FIELDS(version, age_s)
};

// What a member can carry and how fast it is, as far as it knows.
struct Capacity {
  std::optional<std::uint32_t> forward_us, backward_us;  // of a microbatch, mean of the last ones
  SHOAL_FIELDS(forward_us, backward_us)
};

// What passes of a microbatch at a member came to.
enum class RefusalCause : std::uint8_t {
  kActivation = 0,  // what its forward made is not finite
  kGradient = 1,    // what its backward made is not
  kLoss = 2,        // beyond any of such a model
  kMemory = 3,
  kOther = 4,  // what came in cannot be used
};
struct RefusedMicrobatch {
  std::uint64_t serial = 0;
  RefusalCause cause = RefusalCause::kOther;  // of the newest one
  std::uint32_t times = 0;                    // passes that failed since one was counted here
  SHOAL_FIELDS(serial, cause, times)
};

// Peer -> authority, every second and at once when `serving` changes: I live, and this is where I stand.
struct Beat {
  StageId stage;
  Version version;
  bool serving = false;
  bool leaving = false;
  std::uint64_t inner_steps = 0;
  std::uint64_t settled_targets = 0;  // in the parameters, in no committed round
  std::uint32_t job_ms = 0;           // the device's present job could work for so long; 0: none
  std::uint32_t longest_ms = 0;       // the longest finished job of its kind in this session; 0: none is finished
  bool stranded = false;              // nobody of the next stage answers it
  bool behind = false;                // a round was committed without it, and it fetches the state
  std::uint16_t delay_milli = 0;      // mean delay of its gradients lately, in thousandths of an inner step
  std::vector<HeldState> held;        // of its stage, newest first, while it does not serve
  Capacity capacity;
  std::optional<DiskState> on_disk;
  bool movable = false;                    // its owner named no stage, so that it may be asked to serve another one
  std::vector<RefusedMicrobatch> refused;  // above the low-water mark, lowest first
  SHOAL_FIELDS(stage, version, serving, leaving, inner_steps, settled_targets, job_ms, longest_ms, stranded, behind,
               delay_milli, held, capacity, on_disk, movable, refused)
};

// Authority -> peer: heard, and where the run stands.
struct BeatAck {
  Epoch list_epoch;  // of the newest list that was told to all
  std::uint64_t run_targets = 0;
  double run_loss = 0;
  std::uint64_t run_step = 0;
  std::optional<StageId> move_to;  // asks its session to leave in order and to join again for this stage
  SHOAL_FIELDS(list_epoch, run_targets, run_loss, run_step, move_to)
};

// Authority -> peer, either end of a link -> the other: this session is over.
struct Fenced {
  Session session;
  std::string reason;
  SHOAL_FIELDS(session, reason)
};

// Peer -> authority: I want to go.
struct Leave {
  bool round_wanted = false;  // what I settled is in no round yet
  SHOAL_FIELDS(round_wanted)
};

// Authority -> peer: you may go. Peer -> authority: I am gone.
struct Goodbye {
  SHOAL_FIELDS()
};

// Authority -> all: the run is over, exit 0.
struct End {
  std::string reason;
  std::vector<std::uint8_t>
      signature{};  // by the run's key: any peer may pass it on (authority/membership.h, check_end)
  SHOAL_FIELDS(reason, signature)
};

}  // namespace shoal
