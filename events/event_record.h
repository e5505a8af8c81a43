#pragma once
// One thing that happened, as a value: whoever decides or sees it says it in these words, and an EventLog
// (events/event_log.h) makes a line of it. Values: copy, compare their fields; no I/O.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/event_loop.h"
#include "common/ids.h"
#include "events/delay.h"
#include "events/event_kind.h"
#include "transport/messages.h"

namespace shoal {

struct CallbackFigures {
  std::optional<std::uint64_t> longest_ms{};   // rounded up, as the next but one
  std::string longest{};                       // what that one was
  std::optional<std::uint64_t> computed_ms{};  // processor time of the one that used most
};

struct FramesByBase {
  std::optional<std::uint64_t> deltas{}, keys{};  // activations sent as differences to a base; as key frames
};

// What rounds of a stage cost: a member since the line before; all of them, the one that the authority committed.
struct RoundFigures {
  std::optional<std::uint64_t> sent{};       // bytes of pieces and sums
  std::optional<std::uint64_t> device_us{};  // that the device did nothing else
  std::optional<Session> waited_for{};       // who said last what the commit needed
  std::optional<std::uint64_t> waited_ms{};  // behind the one before
};

// What is not set is not written. The members are the fields of a line, in its order (events/event_schema.h).
struct EventRecord {
  EventKind event;
  std::optional<MicrobatchId> microbatch{};
  std::optional<StageId> stage{};  // unset: the process's own, where it has one (EventLog::set_stage)
  std::optional<Session> about{};  // the session it is about, when not the writer's own
  std::optional<PeerId> about_peer{};
  std::optional<EntryName> entry_name{};
  std::optional<Lease> lease{};
  std::optional<WindowSlot> window{};
  std::optional<RoundId> round{};
  std::optional<Version> version{};
  std::optional<Version> back_to{};                // the earlier one whose content a restore gives to it
  std::optional<std::vector<Version>> versions{};  // one a stage
  std::optional<Digest> digest{};
  std::optional<CountTag> tag{};
  std::optional<StepId> step{};
  std::optional<SampleId> sample{};
  std::optional<std::uint32_t> epoch{};
  std::optional<std::vector<EntryName>> entries{};  // a path (stage order) or a window's entries
  std::optional<std::vector<Secured>> secured{};    // a round's entries, or those taken back, per member
  std::optional<std::uint64_t> members{};           // how many
  std::optional<Session> silent{};                  // who was not heard of
  std::string state{};                              // what the session that it is about became
  std::string cause{};
  std::string peer_name{};       // of a member that joined: what its owner calls it
  std::optional<double> loss{};  // nats a target
  std::optional<std::uint64_t> targets{};
  // For a step: how late its gradients were, in targets by delay (set_delays), and for how long its window was closed
  // before all was settled.
  std::optional<double> delay_mean{};
  std::optional<std::vector<std::uint64_t>> delays{};
  std::optional<std::uint64_t> settle_wait_ms{};
  // Bytes of the transport, and of those sent what went over relays; of frames of activations and gradients: as floats,
  // and as they were sent.
  std::optional<std::uint64_t> sent{}, received{}, relayed{}, fp32{}, payload{};
  FramesByBase bases{};
  RoundFigures rounds{};
  CallbackFigures callbacks{};             // of the process's loop
  std::optional<std::uint64_t> missing{};  // lines before this one that could not be written
  std::string level{};                     // of a start: which lines the session writes; empty: all
};

// By the authority: the round is durable.
// The member of a round that agreed last, and how long behind the one before.
struct LastToAgree {
  Session session;
  Duration behind{};
};
EventRecord event_of(const RoundCommit& commit, const std::optional<LastToAgree>& last = {});
// By the authority: the restore is durable. It makes `version` with the content of `back_to`, whose digest is `digest`.
// `tag` is of what is taken back.
EventRecord restored_event(StageId stage, RoundId round, Version version, Version back_to, const Digest& digest,
                           CountTag tag, std::vector<Secured> taken_back, std::string_view cause);
// By the authority: the end of the session is durable.
EventRecord session_over_event(const Session& session, StageId stage, std::string_view cause);
// By the trainer: `path` won, one entry a stage.
EventRecord commit_event(const MicrobatchId& microbatch, std::vector<EntryName> path, double loss,
                         std::uint64_t targets);
EventRecord anchor_event(StageId stage, Version version, CountTag tag, const Digest& digest);
void set_delays(EventRecord& step, const DelayHistogram& delays, std::uint64_t settle_wait_ms);
// By the peer that holds the entry.
EventRecord entry_event(EventKind event, const MicrobatchId& microbatch, const EntryName& entry_name,
                        std::string_view cause = {});
// By any process, every second: the bytes of its record and the longest callback of its loop since the line before.
EventRecord bytes_event(EventRecord bytes, const std::optional<LongestCallback>& longest);
// By a holder: one of its claims at the peer `about`.
EventRecord claim_event(EventKind event, const MicrobatchId& microbatch, const Session& about, const Lease& lease,
                        std::string_view cause = {});

}  // namespace shoal
