#pragma once
// Inside of the authority, split over authority.cc (log, messages, lists), authority_members.cc and
// authority_rounds.cc. Not for others.
//
// Memory is changed when something is decided; what leaves the process follows from a callback of the log's sync, in
// the order of the decisions (decide()). What leaves without a decision of its own tells only what is durable:
// published_ and last_commit_sent.
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "sync/authority.h"
#include "sync/authority_log.h"

namespace shoal {

class AuthorityState final : public Authority {
 public:
  AuthorityState(AuthorityOptions options, AuthorityPort& port, EventLoop& loop, std::unique_ptr<AppendFile> log);
  ~AuthorityState() override;
  Status restore(const LogContent& content);

  void start() override;
  void on_message(const Remote& from, const Message& message) override;
  void on_link_up(const Remote& from) override;
  void on_link_down(const Remote& from) override;
  void on_step(const Step& step) override;
  void set_status(const BeatAck& status) override { status_ = status; }
  void finish(std::function<void()> done) override;
  void give_up(std::function<void()> done) override;
  void end(const std::string& reason) override;
  const MemberList& members() const override { return published_; }
  bool knows(const Session& session) const override;
  bool step_done(StageId stage, StepId step) const override;
  std::vector<StageStatus> status() const override;

 private:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  struct MemberState {
    Member member;  // `serving` as the list says: false while it leaves
    StageId stage;
    bool ready = false;  // holds an anchor and takes part in rounds
    bool leaving = false;
    bool leave_asked = false;  // waits for a round, then Goodbye
    bool fetching = false;     // joined a secured stage, has not served yet
    TimePoint alive_at{};      // last sign of life
    std::optional<std::uint64_t> progress;
    Version version;            // of its anchor, as far as we know
    std::uint64_t settled = 0;  // targets in no committed round, at `version`
    double rate = 0;
    std::uint32_t silent_count = 0;  // attempts in a row that named it silent
    TimePoint commit_sent_at{};
    // The newest commit that names it, with its own entries only: a later commit alone would not tell it that its
    // contribution is secured.
    std::optional<RoundCommit> named;
  };

  struct OpenRound {
    RoundOpen open;
    bool sent = false;  // the opening is durable
    TimePoint sent_at{};
    std::map<Session, RoundReport> contributed, agreed;
    std::set<Session> failed;
    TimerId budget = 0, grace = 0;
  };

  struct StageState {
    StageId stage;
    Epoch epoch;
    Version version;
    Digest digest;
    bool secured = false;
    RoundId round_used;  // newest id given out
    RoundId round_committed;
    StepId step_done;
    std::optional<OpenRound> round;
    std::optional<RoundCommit> last_commit;       // decided
    std::optional<RoundCommit> last_commit_sent;  // durable
    std::optional<RoundAbandon> last_abandon;
    TimePoint last_commit_at{};
    TimePoint retry_at{}, hold_until{}, hold_allowed_at{};
    std::uint32_t failures = 0;  // attempts in a row that came to nothing
    bool last_wanted = false;    // finish()
    std::size_t last_round_failures = 0;
  };

  // ---- authority.cc: log, lists, messages ----
  // Appends, and runs `effect` once it is durable; effects run in the order of the calls.
  void decide(const LogRecord& record, std::function<void()> effect);
  void fail_log(const Error& error);
  MemberList build_list() const;
  void publish(const MemberList& list);
  void send_to_session(const Session& session, Message message);
  void tick();
  void arm_tick();
  StageState* stage_of(StageId stage);

  // ---- authority_members.cc ----
  void on_join(const Remote& from, const JoinRequest& request);
  void answer_join(const Remote& from);
  // The signed list with one more member, and without `older`.
  bool fits_list(const std::vector<std::string>& addresses, const std::optional<Session>& older) const;
  void refuse_join(const Remote& from, const std::string& reason);
  void on_beat(const Remote& from, const Beat& beat);
  void note_life(MemberState& member, const Beat& beat);
  void update_serving(MemberState& member, const Beat& beat);
  void repeat_what_it_missed(MemberState& member);
  // In front of a commit that does not name it: the last one that does.
  void send_commit(const MemberState& member, const RoundCommit& commit);
  void note_named(const RoundCommit& commit);
  void on_leave(const Remote& from, const Leave& leave);
  // Whether the stage's anchor, if it has one, stays when this member goes.
  bool held_without(const StageState& stage, const Session& session) const;
  void list_member(MemberState& member);  // logs and publishes its present state
  // The session is over: its open round is decided, the list follows. `then` runs after the list left.
  void end_session(const Session& session, const std::string& reason, bool fenced, std::function<void()> then = {});
  void check_memberships();
  // To a session that is no member: Goodbye if it left, else Fenced.
  void tell_over(const Remote& to);
  JoinAnswer join_answer(const MemberState& member) const;

  // ---- authority_rounds.cc ----
  bool diloco_active(const StageState& stage) const;
  void maybe_open(StageState& stage);
  const Step* next_step(const StageState& stage) const;
  bool diloco_due(const StageState& stage) const;
  std::vector<Session> participants(const StageState& stage, bool step_round) const;
  void open_round(StageState& stage, const Step* step, std::vector<Session> members);
  void send_open(StageState& stage);
  void on_report(const Remote& from, const RoundReport& report);
  void try_decide(StageState& stage, bool grace_over);
  // The digest more than half of the members agree on, if any, with how many.
  std::optional<std::pair<Digest, std::size_t>> best_vote(const OpenRound& round) const;
  bool sums_add_up(const OpenRound& round, const Digest& digest) const;
  void commit_round(StageState& stage, const Digest& digest);
  void abandon_round(StageState& stage, const std::string& reason);
  void stop_round_timers(OpenRound& round);
  void member_leaves_round(StageState& stage, const Session& session);
  bool leaver_waits(const StageState& stage) const;
  void release_leavers(StageState& stage, const std::vector<Session>& members);
  void forget_done_steps();
  void check_finished();
  bool stage_finished(const StageState& stage) const;

  AuthorityOptions options_;
  AuthorityPort& port_;
  EventLoop& loop_;
  std::unique_ptr<AppendFile> log_;
  bool failed_ = false, started_ = false, ended_ = false, finishing_ = false, gave_up_ = false;
  std::string end_reason_;
  std::function<void()> finished_;
  std::vector<LogRecord> replay_;  // until start()
  std::size_t undurable_ = 0;      // decisions whose effect has not run

  std::map<Session, MemberState> members_;
  std::map<Session, bool> over_;  // true: it left, false: fenced
  std::vector<StageState> stages_;
  std::map<StepId, Step> steps_;      // not done by every stage
  std::map<PeerId, Session> linked_;  // peers whose link is up
  Epoch epoch_;                       // of the list; counts the decisions that change it
  MemberList published_;
  Members published_signed_;
  bool list_dirty_ = false;  // versions changed since published_
  BeatAck status_;
  TimerId tick_timer_ = 0;
  TimePoint last_tick_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// How the reason of a session's end begins when it left by itself.
inline constexpr std::string_view kLeft = "left";

}  // namespace shoal
