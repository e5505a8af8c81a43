#pragma once
// How a run ends, whole or with less: its phases from the first turn to the last, and what belongs to the end alone.
// Everything before settling is the launching process's own (runtime/launch/launch.h).
//
// The table in run_end.cc says what each phase begins with and which may follow; a move that is not in it is a bug and
// stops the process. What a phase waits for comes as a callback, which counts for that phase alone.
//
// A run ends with less when what is needed is not there for LaunchOptions::stop_patience:
// clang-format off
//   a stage has no serving peer, after Ctrl-C       no last rounds, no validation; what is open stays unfinished
//   a stage's peers reach nobody of the next one,   no validation; what is open stays unfinished
//     after Ctrl-C or in validation
//   peers serve, and nothing of what is open or   the same; at twice the longest pause between two microbatches lately
//     validated comes in, after Ctrl-C              if that is longer, and at most at kPatienceMax
//   peers refuse what is under way, since their     the same, and an error that names the options to change
//     numbers fail (runtime/launch/refusal_watch.h)
//   nobody holds a stage's state that is fetched    the run does not end; on_over() says how to go on
// clang-format on
//
// Thread: loop only.   Borrows: all that it is given.   Bounds: see FinalStates.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "authority/authority.h"
#include "common/lifetime.h"
#include "runtime/launch/final_states.h"
#include "runtime/launch/launch_port.h"
#include "runtime/launch/refusal_watch.h"
#include "runtime/trainer/trainer.h"

namespace shoal {

enum class RunPhase : std::uint8_t {
  kOpening,     // whether what the logs say is durable is not known
  kTraining,    // or waiting for peers
  kSettling,    // nothing more is issued; what is open ends
  kLastRounds,  // windows are flushed
  kValidating,
  kGivingUp,  // without a stage: what was decided becomes durable, nothing more is decided
  kFetching,  // with save: every stage's state
  kSaving,    // with save: to disk. The peers keep theirs until it is there: afterwards nobody has them
  kLogging,   // what no round secured is lost by name, and the log gets the record of the end
  kTelling,   // END was sent
  kOver,
};

class RunEnd {
 public:
  static constexpr Duration kSettleTime = 10s;

  struct Environment {
    EventLoop& loop;
    EventLog& events;
    const LaunchOptions& options;
    LaunchOwner& owner;
    CommitBook& book;
    RecordLog& log;  // the trainer's
    Authority& authority;
    const std::function<void(std::function<void()> job, std::function<void()> done)>& run_aside;
    std::function<bool()> had_every_stage;  // at one time in this life: else there is nothing to validate
    std::function<void(const std::string& reason)> on_end_sent;
    std::function<void(std::optional<Error> error)> on_over;  // once, and the last call
  };
  explicit RunEnd(Environment environment) : env_(std::move(environment)) {}

  // What the logs say is durable. Training begins, or its end when that is wanted already. A run that had ended in an
  // earlier life is told so again.
  void begin(Trainer& trainer, Links& links);
  // As Launch's. kSettleTime after stop(), and whenever that has doubled, a notice says what is waited for.
  void finish(const std::string& reason);
  void stop(const std::string& reason);
  // Over, from any phase; the error names the folder to go on with.
  void on_log_failure(const Error& error);
  void on_restored();  // a stage went back: what is validated has a version that nobody has
  void tick(TimePoint now);

  static std::string_view name_of(RunPhase phase);
  static bool may_follow(RunPhase from, RunPhase to);
  RunPhase phase() const { return phase_; }
  bool is(RunPhase phase) const { return phase_ == phase; }
  bool finishing() const { return phase_ > RunPhase::kTraining; }
  bool ended() const { return told_at_.has_value(); }  // END was sent
  FinalStates* states() { return states_.get(); }      // while they are fetched
  void add_to(RunSummary& summary) const;

 private:
  struct Row;
  static const Row& row_of(RunPhase phase);
  enum class Extent : std::uint8_t { kWhole, kCutOff, kWithoutStage };

  void go(RunPhase to);
  // A callback for what the present phase waits for: `step` runs in a turn of its own, unless another phase has begun
  // by then.
  std::function<void()> then(void (RunEnd::*step)());

  void settle();
  void last_rounds() { go(RunPhase::kLastRounds); }
  void make_last_rounds();
  void validate_or_not();
  void validate();
  void leave_stage();
  void stop_rounds();
  void take_states() { go(env_.options.save ? RunPhase::kFetching : RunPhase::kLogging); }
  void fetch_states();
  void save_states();
  void log_end();
  void tell_end();
  void linger();
  void over(std::optional<Error> error);

  void watch_peers(TimePoint now);
  std::string missing_stages() const;
  std::string cut_stages() const;
  void watch_refusals(TimePoint now);
  bool stands_still(TimePoint now) const;
  bool too_long(const std::string& what, std::optional<TimePoint>& since, TimePoint now, const std::string& notice);
  void give_up(const std::string& missing);
  void cut_off(const std::string& how);
  void tell_waiting(TimePoint now);
  std::string waited_for() const;

  Environment env_;
  Trainer* trainer_ = nullptr;  // from begin() on, as links_
  Links* links_ = nullptr;
  RunPhase phase_ = RunPhase::kOpening;
  Extent extent_ = Extent::kWhole;
  std::string wanted_;  // finish() before begin()
  std::string reason_;
  std::optional<double> validation_loss_;
  std::vector<Version> validation_versions_;
  std::unique_ptr<FinalStates> states_;
  FinalStates::Fetched fetched_;
  std::vector<CommitBook::Listing> lost_;  // said once the record of the end is durable
  std::optional<TimePoint> stop_asked_;    // a person's word
  Duration told_after_ = kSettleTime;      // stop_asked_: when it is said next what is waited for
  std::optional<TimePoint> missing_since_, cut_since_;
  struct CameIn {
    std::uint64_t count = 0;  // microbatches decided, then samples validated
    TimePoint at{};
    Duration longest_pause{};  // between two of them, lately
  };
  CameIn came_in_;
  RefusalWatch refusals_;
  std::optional<Error> hopeless_;  // why it ended by itself
  std::optional<TimePoint> told_at_;
  bool linger_told_ = false;
  Lifetime lifetime_;
};

}  // namespace shoal
