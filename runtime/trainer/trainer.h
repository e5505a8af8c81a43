#pragma once
// Feeds microbatches and decides them: holder for stage 0, keeper of the run's only log. Computes nothing big. Which
// steps there are: step_book.h; train lines: line_book.h; validation and estimates: evaluator.h.
//
// Thread: loop only. Borrows everything in Environment. The log is opened and replayed by the caller
// (runtime/launch/run_logs.h).
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/event_loop.h"
#include "common/ids.h"
#include "common/lifetime.h"
#include "common/log_throttle.h"
#include "common/record_log.h"
#include "events/event_log.h"
#include "events/train_line.h"
#include "router/commit_book.h"
#include "router/courier.h"
#include "router/held_back.h"
#include "router/neighbours.h"
#include "router/path_blames.h"
#include "runtime/config/config.h"
#include "runtime/data/samples.h"
#include "runtime/plan/flight_plan.h"
#include "runtime/trainer/commit_queue.h"
#include "runtime/trainer/evaluator.h"
#include "runtime/trainer/flight_follower.h"
#include "runtime/trainer/line_book.h"
#include "runtime/trainer/step_book.h"
#include "transport/transport.h"

namespace shoal {

struct TrainerOptions {
  RunConfig config;
  Session self;
  std::uint64_t trainer_id = 0;  // of MicrobatchIds; the same after a restart
  // The tag that the entry's session makes for it in the path of that microbatch.
  std::function<std::uint64_t(const EntryName& entry, const MicrobatchId& microbatch)> tag_of;
};

struct TrainerEnvironment {
  EventLoop& loop;
  Transport& transport;
  EventLog& events;
  const Samples& samples;
  CommitBook& book;  // replayed
  RecordLog& log;
};

// Which may follow which: the table in trainer.cc. A move that is not in it is a bug and stops the process.
enum class TrainerPhase : std::uint8_t {
  kWaiting,  // for start()
  kFeeding,
  kSettling,  // issues nothing more; what is open is decided
  kLeaving,   // decides nothing more; a step that this cuts short is announced as at any end
  kGivingUp,  // decides nothing more, and announces no step
  kFailed,    // the log takes nothing more
  kStopped,
};

class Trainer final : private HopOwner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_step(const Step& step) = 0;  // allreduce: all its microbatches are logged
    virtual void on_train_line(const TrainLine& line) = 0;
    virtual void on_parked(StageId stage, bool parked) = 0;
    virtual void on_log_failure(const Error& error) = 0;  // at once, and once: nothing is decided any more
    virtual void on_lost(const CommitBook::Listing& listing) = 0;
    virtual void on_misconduct(const Session& session, const std::string& what) = 0;  // its session has to end
    virtual void on_validated(std::uint64_t samples, std::uint64_t of) = 0;           // one more
  };

  Trainer(TrainerOptions options, TrainerEnvironment environment, Owner& owner);
  ~Trainer() override;

  void start();  // once; later ones are passed over
  // Issues nothing more, as `how` says; `settled` is called when all that was logged is durable, and behind kSettling
  // when nothing is open. Instead of an earlier end, or after it (whose `settled` is not called any more). What is open
  // stays unfinished behind kGivingUp, and is released behind kLeaving. REQUIRES: kSettling, kLeaving or kGivingUp.
  void end_feeding(TrainerPhase how, std::function<void()> settled);
  void stop();
  void say_lost(const CommitBook::Listing& listing);  // that it is is durable
  Evaluator& evaluator() { return evaluator_; }

  // ---- from the transport and the authority ----
  // Gradient, Busy, Have, Gone, NeedKeyFrame, Progress, Waiting, CommitAck: how our hops go on. Without frames: stage 0
  // has no gradient to hand on.
  void on_hop_message(const Remote& from, const Message& message);
  void on_waiting(const Remote& from, const Waiting& message);  // a peer asks what is decided
  void on_ack(const Remote& from, const CommitAck& message);
  void on_link_up(const Remote& remote);
  void on_link_down(const Remote& remote);
  void on_members(const MemberList& list);
  void on_round_commit(const RoundCommit& commit);
  void on_session_over(const Session& session, const std::string& why);

  bool reached_end() const;
  const CourierCounters& courier_counters() const { return courier_.counters(); }
  std::size_t parked() const { return courier_.hops().parked(); }
  const Roster& roster() const { return neighbours_.roster(); }  // tests wait for it
  std::uint64_t acks_gone() const { return acks_gone_; }
  // Steps that are logged whole and not done at every stage: announced again after a restart.
  void announce_steps();

 private:
  // HopOwner
  std::vector<Bytes> frames_of(const Session& to, const Forward& message, bool key) override;
  void on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) override;
  void on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) override;
  void on_parked(const MicrobatchId& microbatch, StageId stage, bool parked) override;
  void write(const EventRecord& event) override { env_.events.write(event); }

  bool is(TrainerPhase phase) const { return phase_ == phase; }
  bool decides() const { return is(TrainerPhase::kFeeding) || is(TrainerPhase::kSettling); }
  void go(TrainerPhase to);
  void take_up();
  void check_settled();
  void tick();
  void issue();
  bool may_issue(std::uint64_t serial) const;
  void follow_flight(const MicrobatchId& microbatch);
  // The first element of its path that the session that it names did not make.
  std::optional<std::size_t> forged_in(const MicrobatchId& microbatch, const Gradient& gradient) const;
  void refuse_repeated(const MicrobatchId& microbatch, const Gradient& gradient);
  void refuse_forged(const MicrobatchId& microbatch, const Gradient& gradient, std::size_t bad);
  void decide(const MicrobatchId& microbatch, const Gradient& gradient);
  void sync_log(std::function<void()> durable);
  void on_durable(const MicrobatchId& microbatch);
  void flush_commits();
  void count(const MicrobatchId& microbatch, const Gradient& gradient);
  void announce(StepId step);
  void announce_whole();
  void end_sessions(const HeldBack::Culprits& culprits);
  void look_for_full();  // whether nothing can be issued any more, and because of whom

  TrainerOptions options_;
  TrainerEnvironment env_;
  Owner& owner_;
  Neighbours neighbours_;
  Courier courier_;
  SampleOrder order_;
  const FlightLimits in_flight_;  // asked at every commit, so not chosen anew
  FlightFollower follower_;       // between its numbers
  TrainerPhase phase_ = TrainerPhase::kWaiting;
  std::function<void()> settled_;
  struct Open {
    Bytes frame;  // its tokens, encoded
    TimePoint issued;
  };
  std::map<MicrobatchId, Open> frames_;
  std::map<MicrobatchId, Gradient> deciding_;  // logged, not durable yet
  CommitQueue commits_;
  std::unordered_map<SampleId, Session> took_;  // with codecs that keep bases: the session of stage 0 that counted last
  StepBook steps_;
  LineBook lines_;
  HeldBack held_back_;
  PathBlames blames_;
  LogThrottle said_;
  TimerId tick_timer_ = 0;
  TimePoint next_repeat_{};
  std::uint64_t acks_gone_ = 0;
  Lifetime lifetime_;
  Evaluator evaluator_;
};

}  // namespace shoal
