#pragma once
// Feeds microbatches and decides them: holder for stage 0, keeper of the run's only log. Computes nothing big.
// Thread: loop only. Borrows everything in Environment. The log is opened and replayed by the caller
// (runtime/launch/launch.h).
//
// allreduce (and a diloco run's warm start): microbatch n belongs to step n / microbatches_per_step + 1. Step s is
// issued when s - 2 is done at every stage (drain: s - 1), and announced by Owner::on_step when all its microbatches
// are logged.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/event_loop.h"
#include "common/ids.h"
#include "common/lifetime.h"
#include "common/record_log.h"
#include "events/event_log.h"
#include "events/recent_rate.h"
#include "events/train_line.h"
#include "router/commit_book.h"
#include "router/courier.h"
#include "runtime/config/config.h"
#include "runtime/data/samples.h"
#include "runtime/plan/flight_plan.h"
#include "transport/transport.h"

namespace shoal {

struct TrainerOptions {
  RunConfig config;
  Session self;
  std::uint64_t trainer_id = 0;  // of MicrobatchIds; the same after a restart
};

struct TrainerEnvironment {
  EventLoop& loop;
  Transport& transport;
  EventLog& events;
  const Samples& samples;
  CommitBook& book;  // replayed
  RecordLog& log;
};

class Trainer final : private HopOwner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_step(const Step& step) = 0;  // allreduce: all its microbatches are logged
    virtual void on_train_line(const TrainLine& line) = 0;
    virtual void on_progress(std::uint64_t run_targets, double loss, std::uint64_t step) = 0;
    virtual void on_parked(StageId stage, bool parked) = 0;
    virtual void on_log_failure(const Error& error) = 0;  // at once, and once: nothing is decided any more
    virtual void on_lost(const CommitBook::Listing& listing) = 0;
    virtual void on_validated(std::uint64_t samples, std::uint64_t of) = 0;  // one more
  };

  Trainer(TrainerOptions options, TrainerEnvironment environment, Owner& owner);
  ~Trainer() override;

  void start();
  // Issues nothing more; `settled` is called when nothing is open and all that was logged is durable.
  void finish(std::function<void()> settled);
  // Instead of finish(), or after it (whose `settled` is not called any more): nothing more is decided, what is open
  // stays unfinished; `settled` is called when all that was logged is durable.
  void give_up_open(std::function<void()> settled);
  // The same when rounds follow: what is open is released, and a step that this cuts short is announced as at any end.
  void leave_open(std::function<void()> settled);
  // Forward only over the validation samples, on the anchors of these versions, one a stage: mean loss a target, nats.
  // A peer whose anchor is at another version does not answer; until one at this version does, it waits. REQUIRES:
  // finished, and no round will make another version.
  void validate(std::vector<Version> versions, std::function<void(Result<double>)> done);
  void stop_validation();  // `done` is not called any more
  void stop();
  // Nothing more can secure what is not merged: it is lost in the book. say_lost() once that is durable.
  std::vector<CommitBook::Listing> list_rest(const std::string& cause);
  void say_lost(const std::vector<CommitBook::Listing>& listings);

  // ---- from the transport and the authority ----
  void on_message(const Remote& from, Message& message, TransferId transfer);
  void on_link_up(const Remote& remote);
  void on_link_down(const Remote& remote);
  void on_members(const MemberList& list);
  void on_round_commit(const RoundCommit& commit);
  void on_session_over(const Session& session, const std::string& why);

  bool reached_end() const;
  const CourierCounters& courier_counters() const { return courier_.counters(); }
  const Roster& roster() const { return neighbours_.roster(); }
  std::uint64_t issued() const { return issued_; }
  std::size_t open() const { return book().open(); }
  std::size_t parked() const { return courier_.parked(); }
  const CommitBook& book() const { return env_.book; }
  std::uint64_t acks_gone() const { return acks_gone_; }
  // Steps that are logged whole and not done at every stage: announced again after a restart.
  void announce_steps();
  StepId step_of(std::uint64_t serial) const;  // 0: no step (diloco after its warm start)

 private:
  // HopOwner
  std::vector<Bytes> frames_of(const Session& to, const Forward& message, bool key) override;
  void on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) override;
  void on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) override;
  void on_parked(const MicrobatchId& microbatch, StageId stage, bool parked) override;
  void write(const EventRecord& event) override { env_.events.write(event); }

  void tick();
  void schedule_tick();
  void issue();
  bool may_issue(std::uint64_t serial) const;
  void decide(const MicrobatchId& microbatch, const Gradient& gradient);
  void sync_log(std::function<void()> durable);
  void on_durable(const MicrobatchId& microbatch);
  void queue_commits(const std::map<Session, std::vector<CommitItem>>& commits);
  void flush_commits();
  void count_step(const MicrobatchId& microbatch, const Gradient& gradient);
  void note_end(TrainLine& line, TimePoint now);
  void announce(StepId step);
  void announce_whole();
  void check_settled();
  struct Evaluation {
    std::vector<Version> versions{};  // none: whatever anchors the peers have
    std::function<void(double)> finished{};
    std::optional<StepId> estimate{};  // while it trains, behind this step
    std::uint64_t first = 0, next = 0, end = 0, done = 0;
    std::uint64_t first_serial = 0;
    double loss_sum = 0;
    std::uint64_t targets = 0;
  };
  // The validation loss while it trains, of some samples, each at whatever anchors its peers have just then.
  void estimate(StepId step);
  void begin_evaluation(Evaluation evaluation, std::uint64_t samples_max);  // 0: all
  void on_evaluated(const MicrobatchId& microbatch, const Gradient& gradient);
  void next_evaluations();
  void end_evaluation();
  void release_open(std::uint64_t trainer);  // of these ids all that is not being decided
  void list(const CommitBook::Listing& listing);
  // Another one in each life: what an earlier one validated is closed at the peers for good.
  std::uint64_t evaluation_trainer() const {
    return mix64(options_.trainer_id, options_.self.incarnation) | (1ull << 63);
  }

  TrainerOptions options_;
  TrainerEnvironment env_;
  Owner& owner_;
  Neighbours neighbours_;
  Courier courier_;
  SampleOrder order_;
  const FlightLimits in_flight_;  // asked at every commit, so not chosen anew
  const std::uint64_t evaluations_in_flight_;
  std::map<MicrobatchId, Bytes> frames_;                // encoded tokens of what is open
  std::map<MicrobatchId, Gradient> deciding_;           // logged, not durable yet
  std::map<Session, std::vector<CommitItem>> commits_;  // to go out with the next flush
  std::map<std::uint64_t, std::uint64_t> step_logged_;  // step -> microbatches durable
  std::map<std::uint64_t, std::set<std::uint16_t>> step_stages_;
  std::uint64_t steps_done_ = 0;  // all steps up to it are done at every stage
  std::uint64_t announced_ = 0;   // the newest step that was announced; all before it were
  std::function<void()> settled_;
  bool finishing_ = false, gave_up_ = false, left_open_ = false, started_ = false, log_failed_ = false;
  std::optional<Evaluation> evaluation_;
  std::optional<double> last_estimate_;
  std::uint64_t evaluations_ = 0;  // ids used so far
  Lifetime lifetime_;
  TimerId tick_timer_ = 0;
  TimePoint started_at_{}, next_repeat_{}, line_since_{};
  RecentRate rate_{60s};  // of committed targets
  double line_loss_ = 0;
  std::uint64_t line_targets_ = 0, line_microbatches_ = 0, lines_ = 0;
  std::uint64_t issued_ = 0, acks_gone_ = 0;
  std::unordered_map<SampleId, Session> took_;  // with codecs that keep bases: whose path counted last
  double last_loss_ = 0;
};

}  // namespace shoal
