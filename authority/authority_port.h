#pragma once
// What the authority (authority/authority.h) is given and asked for: its options, the process that it lives in, what it
// shows.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "authority/recent_commits.h"
#include "common/event_loop.h"
#include "common/rule_id.h"
#include "events/event_record.h"
#include "transport/limits.h"
#include "transport/messages.h"

namespace shoal {

struct AuthorityOptions {
  RunId run;
  Digest path_secret{};  // of which each session's key is made that its admission brings (common/crypto/path_tag.h)
  Manifest manifest;     // signed by the run's key: a log goes on with the one that it began with and with no other
  std::uint16_t stages = 1;
  RuleId rule = RuleId::kDiloco;
  std::uint64_t warm_steps = 0;  // diloco: allreduce for the first steps (numbered from 1)
  // diloco: of one replica. A round opens when the settled targets of all that could take part come to as many for each
  // of them; 0 = never by targets.
  std::uint64_t round_targets = 0;
  Duration round_cap{0};  // or after this time with anything settled; 0 = never
  // The least patience with a member: longer where longer was measured (authority/member_book.h).
  Duration membership = 10s;
  Duration round_grace = 2s;                 // after a quorum reported, wait this long for the others
  Duration round_budget{0};                  // for the whole reduction; 0 = from payload_bytes (sync/round_budget.h)
  std::uint64_t entry_targets = 0;           // of each entry: what a contribution weighs by its entries; 0 = not known
  std::vector<std::uint64_t> payload_bytes;  // of what a member brings to a round, by stage; empty = not known
  // A stage whose newest version nobody holds any more goes back to the newest one that somebody has, after so long.
  Duration restore_after = 60s;
  // No new round of a stage for this long after a joiner came that must fetch.
  Duration join_hold = 5s;
  bool rebalance = false;  // asks members to serve another stage (authority/moves.h)
  Duration rebalance_horizon = std::chrono::minutes(10);
  std::vector<double> stage_work;  // of a microbatch, by stage, in any unit; empty = all alike
  // Where a plan has peers whose owners name no stage: a wish, as theirs would be. REQUIRES: stages of the run.
  std::map<PeerId, StageId> layout{};
  std::size_t list_bytes_max =
      limits::kListBytesMax;  // of the packed list: a joiner that it has no room for is refused
};

// What the authority asks of the process it lives in. None of these may call back into the Authority.
class AuthorityPort {
 public:
  virtual ~AuthorityPort() = default;
  virtual void send(const PeerId& peer, Message message) = 0;
  virtual std::vector<std::uint8_t> sign(ByteView body) = 0;     // by the run's key
  virtual void fence(const Session& session) = 0;                // Transport::fence
  virtual std::string other_host(const PeerId& peer) const = 0;  // Transport::other_host
  // The newest list; the trainer routes by it. Called after it is logged.
  virtual void on_members(const MemberList& list) = 0;
  virtual void on_round_commit(const RoundCommit& commit) = 0;  // for the trainer: entries merged
  virtual void on_round_abandoned(const RoundAbandon& abandon) = 0;
  // The stage went back to an earlier version (`back_to`): what later rounds secured is in no anchor any more.
  virtual void on_restored(const RoundCommit& commit, const RecentCommits::TakenBack& taken) = 0;
  // The first of the entries that a member says its contribution holds which no round may name, and why: the trainer
  // never committed it (its log would then look older than ours), or it is merged or lost already.
  virtual std::optional<std::string> unfit_for_round(StageId stage, const Session& session,
                                                     const std::vector<std::uint64_t>& serials) const = 0;
  // Up to which version the trainer's log durably says what the stage's rounds secured: it need not be told of
  // them again after a restart.
  virtual Version settled(StageId stage) const = 0;
  // So many microbatches are durable in the trainer's log. Each commit's record carries it, so that an older copy of
  // that log is known.
  virtual std::uint64_t paths_logged() const = 0;
  // The session is over; what no committed round names is lost. All rounds that name it were reported before.
  virtual void on_session_over(const Session& session, StageId stage, const std::string& why) = 0;
  // A sync of the log has not returned for `waited`: decisions wait for it. Said again while it goes on.
  virtual void on_slow_log(Duration waited) = 0;
  // The log takes nothing more: no list and no round will be decided. The process says so and stops.
  virtual void on_log_failure(const Error& error) = 0;
  virtual void write(const EventRecord& event) = 0;  // into the process's EventLog
};

// A member as it stands on the list, and since when it has sent no beat.
struct MemberLife {
  Session session;
  StageId stage;
  bool serving = false, leaving = false;
  Duration quiet{0};
};

// Why a run of one stage parks, for status lines.
struct StageStatus {
  StageId stage;
  std::size_t members = 0, serving = 0;
  bool secured = false;
  Version version;
  std::vector<Session> last_members;  // of the last committed round: its members could bring the stage back
  std::vector<Session> ahead;         // members that hold a newer version than the log knows
  std::size_t holders = 0;            // members that hold the version, also those that leave
  std::vector<Session> stranded;      // of those that serve: nobody of the next stage answers them
  std::vector<std::pair<Session, RefusedMicrobatch>> refused;  // what those that serve say in their beats
  // What more than half of those that serve and made kDelayWindows steps say of theirs in their beats, or more: the
  // lower median, which no single one of several moves past the others. None: there is nobody such.
  std::optional<double> delay;
  std::optional<DiskState> on_disk;  // the newest checkpoint that one of its members says it has on its disk
  // Nobody holds the version: the newest one that a member has which could be gone back to, and when that is done.
  std::optional<Version> back_to;
  Duration back_in{};
};

}  // namespace shoal
