#pragma once
// The one process that keeps the member list, fences sessions and decides rounds: control only, one writer of one
// durable log. State machine without I/O, threads or clock of its own; lives in the launching process. Thread: loop
// only. Bounds: limits::kStagesMax x kReplicasMax members; one open round a stage; steps that are not done yet; 16
// bytes a session that is over.
//
// Who calls what when (runtime's launch):
//   - open(history of the log), then start() once the trainer is there: it replays every decision, so that the trainer
//     can bring its own log up to date (merged entries, sessions over), and publishes the list. All membership timers
//     begin anew: the authority was away, not they.
//   - on_message: JoinRequest, Beat, Leave, Goodbye, RoundReport of peers; on_link_up, on_link_down: links.
//   - on_step: allreduce, all microbatches of a step are committed; again after a restart.
//   - set_status: the run's totals changed.
//   - the run ends: finish(done), then validation and saving, then end(reason); or give_up(done), then end(reason).
//
// Every decision (member added or changed, session over, round opened, round committed) is one record of the log and is
// durable before any message about it leaves. A round has two records: its opening (ids are never reused) and its
// commit; an opening without a commit is an abandoned round. If the log fails nothing is decided any more
// (AuthorityPort::on_log_failure).
//
// Rounds: one RoundOpen per stage and step (allreduce) or when the members' settled targets reach theirs (diloco). A
// round is committed when every member reported what it contributed and all members, or more than half of them after
// the grace time, report the same digest; else it is abandoned and retried among the next list. A fenced member's open
// round is decided first, so what an ended session had in no committed round can enter none. Members that missed a
// commit get it again when they come up or their beats show an older version.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/event_loop.h"
#include "common/storage.h"
#include "events/event_record.h"
#include "sync/outer_rule.h"
#include "transport/messages.h"
#include "transport/transport.h"

namespace shoal {

struct AuthorityOptions {
  RunId run;
  Manifest manifest;  // signed by the run's key: a log goes on with the one that it began with and with no other
  std::uint16_t stages = 1;
  RuleId rule = RuleId::kDiloco;
  std::uint64_t warm_steps = 0;  // diloco: allreduce for the first steps (numbered from 1)
  // diloco: of one replica. A round opens when the settled targets of all who could take part come to as many for each
  // of them; 0 = never by targets.
  std::uint64_t round_targets = 0;
  Duration round_cap{0};        // or after this time with anything settled; 0 = never
  Duration membership = 10s;    // fenced after this long without a beat that shows life
  Duration round_grace = 2s;    // after a quorum reported, wait this long for the others
  Duration round_budget = 30s;  // for the whole reduction
  Duration join_hold =
      5s;  // no new round of a stage for this long after a joiner came that must fetch; at most once in 6 of these
};

// What the authority asks of the process it lives in. None of these may call back into the Authority.
class AuthorityPort {
 public:
  virtual ~AuthorityPort() = default;
  virtual void send(const PeerId& peer, Message message) = 0;
  virtual std::vector<std::uint8_t> sign(ByteView body) = 0;  // by the run's key
  virtual void fence(const Session& session) = 0;             // Transport::fence
  // The newest list; the trainer routes by it. Called after it is logged and signed.
  virtual void on_members(const MemberList& list, const Members& signed_list) = 0;
  virtual void on_round_commit(const RoundCommit& commit) = 0;  // for the trainer: entries merged
  virtual void on_round_abandoned(const RoundAbandon& abandon) = 0;
  // The session is over; what no committed round names is lost. All rounds that name it were reported before.
  virtual void on_session_over(const Session& session, StageId stage, const std::string& why) = 0;
  // The log takes nothing more: no list and no round will be decided. The process says so and stops.
  virtual void on_log_failure(const Error& error) = 0;
  virtual void write(const EventRecord& event) = 0;  // into the process's EventLog
};

// Why a run of one stage parks, for status lines.
struct StageStatus {
  StageId stage;
  std::size_t members = 0, serving = 0;
  bool secured = false;
  Version version;
  std::vector<Session> last_members;  // of the last committed round: who could bring the stage back
};

class Authority {
 public:
  // `log` was opened on the file whose earlier content is `history` (empty for a new run). Borrows port and loop; they
  // outlive it. ERRORS: kCorrupt (a damaged middle, another run's log; a torn tail must have been cut by the caller:
  // authority_log_valid_bytes).
  static Result<std::unique_ptr<Authority>> open(AuthorityOptions options, AuthorityPort& port, EventLoop& loop,
                                                 std::unique_ptr<AppendFile> log, ByteView history);
  virtual ~Authority() = default;
  virtual void start() = 0;
  virtual void on_message(const Remote& from,
                          const Message& message) = 0;  // JoinRequest, Beat, Leave, Goodbye, Step, RoundReport
  virtual void on_link_up(const Remote& from) = 0;
  virtual void on_link_down(const Remote& from) = 0;  // ends no session
  // allreduce: all microbatches of the step are committed. Relayed to the members in front of the step's RoundOpen.
  virtual void on_step(const Step& step) = 0;
  virtual void set_status(const BeatAck& status) = 0;  // run status for BeatAcks; list_epoch is filled in
  // Last round of every stage that someone serves; `done` when all are decided (or nothing is left to decide). No round
  // is opened from then on: the caller may list what is not secured.
  virtual void finish(std::function<void()> done) = 0;
  // Instead of finish(), or after it (whose `done` is not called any more): opens no round, abandons those under way,
  // and calls `done` once what was decided before is durable and told.
  virtual void give_up(std::function<void()> done) = 0;
  virtual void end(const std::string& reason) = 0;  // End to everybody; joiners get it too from now on
  virtual const MemberList& members() const = 0;    // newest published
  // Whether a JoinRequest of this session would admit nobody: it is or was a member, or the run has ended.
  virtual bool knows(const Session& session) const = 0;
  virtual bool step_done(StageId stage, StepId step) const = 0;  // allreduce: this stage committed it
  virtual std::vector<StageStatus> status() const = 0;
};

// How much of a log's content is whole records: open the file, which locks it, then cut it there (Storage::truncate).
// ERRORS: kCorrupt (a damaged record with whole ones behind it).
Result<std::size_t> authority_log_valid_bytes(ByteView history);

}  // namespace shoal
