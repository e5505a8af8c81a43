#include "runtime/launch/run_end.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "authority/patience.h"
#include "common/check.h"
#include "common/phase_set.h"
#include "events/lost_causes.h"
#include "runtime/launch/parked_text.h"

namespace shoal {

namespace {
constexpr Duration kEndStep = 500ms;  // END has left our queues by then
constexpr Duration kEndTime = 10s;    // for members that are silent; a resumed run that was over tells it for so long

// Nothing comes in: by the longest pause between two that did, lately.
Duration pause_borne(Duration least, Duration longest) {
  return std::max<Duration>(least, std::min<Duration>(2 * longest, kPatienceMax));
}

std::string whole_seconds(Duration time) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(time).count()) + " s";
}
}  // namespace

// ---- the table ----

struct RunEnd::Row {
  RunPhase phase;
  std::string_view name;
  void (RunEnd::*begin)();
  PhaseSet<RunPhase> next;  // and kOver, which may follow every other one
};

const RunEnd::Row& RunEnd::row_of(RunPhase phase) {
  using enum RunPhase;
  // clang-format off
  static constexpr std::array<Row, 11> kRows = {{
      // phase      for people         begins with                may be followed by
      {kOpening,    "opening",         nullptr,                   {kTraining, kTelling}},
      {kTraining,   "training",        nullptr,                   {kSettling}},
      {kSettling,   "settling",        &RunEnd::settle,           {kLastRounds, kGivingUp}},
      {kLastRounds, "last rounds",     &RunEnd::make_last_rounds, {kValidating, kGivingUp, kFetching, kLogging}},
      {kValidating, "validating",      &RunEnd::validate,         {kValidating, kGivingUp, kFetching, kLogging}},
      {kGivingUp,   "giving up",       &RunEnd::leave_stage,      {kFetching, kLogging}},
      {kFetching,   "fetching states", &RunEnd::fetch_states,     {kSaving, kLogging}},
      {kSaving,     "saving",          &RunEnd::save_states,      {kLogging}},
      {kLogging,    "logging the end", &RunEnd::log_end,          {kTelling}},
      {kTelling,    "telling the end", &RunEnd::tell_end,         {}},
      {kOver,       "over",            nullptr,                   {}},
  }};
  // clang-format on
  return kRows.at(static_cast<std::size_t>(phase));
}

std::string_view RunEnd::name_of(RunPhase phase) { return row_of(phase).name; }

bool RunEnd::may_follow(RunPhase from, RunPhase to) {
  return to == RunPhase::kOver ? from != RunPhase::kOver : row_of(from).next.has(to);
}

void RunEnd::go(RunPhase to) {
  if (!may_follow(phase_, to))
    check_failed(__FILE__, __LINE__, "may_follow(phase, to)", check_operands(name_of(phase_), name_of(to)));
  phase_ = to;
  if (const auto begin = row_of(to).begin) (this->*begin)();
}

std::function<void()> RunEnd::then(void (RunEnd::*step)()) {
  return lifetime_.guard([this, step, at = phase_] {
    env_.loop.post(lifetime_.guard([this, step, at] {
      if (is(at)) (this->*step)();
    }));
  });
}

// ---- what asks for an end ----

void RunEnd::begin(Trainer& trainer, Links& links) {
  trainer_ = &trainer;
  links_ = &links;
  if (!env_.book.ended()) {
    go(RunPhase::kTraining);
    return wanted_.empty() ? void() : finish(wanted_);
  }
  // An earlier life ended the run and may have died before it said so.
  reason_ = "the run was over already";
  env_.owner.on_notice("this run has ended already: peers that were away are told for " + whole_seconds(kEndTime));
  if (const std::string& why = env_.options.not_saved_before; env_.options.save && !why.empty())
    fetched_.unsaved = make_error(
        ErrorCode::kGone, "nothing was saved: the run had ended, and its peers keep no states any more; " + why);
  else if (env_.options.save)
    env_.owner.on_notice("its model lies where it was saved, whole: nothing is written again");
  lost_ = env_.book.lost().left_at_end();
  go(RunPhase::kTelling);
}

void RunEnd::finish(const std::string& reason) {
  if (is(RunPhase::kOpening)) wanted_ = reason;
  if (!is(RunPhase::kTraining)) return;
  reason_ = reason;
  env_.owner.on_notice("finishing: " + reason);
  go(RunPhase::kSettling);
}

void RunEnd::stop(const std::string& reason) {
  if (!stop_asked_) stop_asked_ = env_.loop.now();
  finish(reason);
}

void RunEnd::on_log_failure(const Error& error) {
  env_.loop.post(lifetime_.guard([this, error] {
    over(make_error(error.code, "a log of the run cannot be written: " + error.message +
                                    "; once it can, go on with: shoal launch --resume " + env_.options.folder));
  }));
}

void RunEnd::on_restored() {
  if (!is(RunPhase::kValidating)) return;
  trainer_->evaluator().stop();
  go(RunPhase::kValidating);
}

void RunEnd::over(std::optional<Error> error) {
  if (is(RunPhase::kOver)) return;
  states_.reset();
  go(RunPhase::kOver);
  env_.on_over(std::move(error));
}

// ---- the phases ----

void RunEnd::settle() { trainer_->end_feeding(TrainerPhase::kSettling, then(&RunEnd::last_rounds)); }

void RunEnd::make_last_rounds() { env_.authority.finish(then(&RunEnd::validate_or_not)); }

void RunEnd::validate_or_not() {
  const bool whole = extent_ == Extent::kWhole && env_.had_every_stage();
  whole ? go(RunPhase::kValidating) : take_states();
}

void RunEnd::validate() {
  env_.owner.on_notice("validating");
  std::vector<Version> versions;  // the last ones: what is saved next has them too
  for (const StageStatus& stage : env_.authority.status()) versions.push_back(stage.version);
  trainer_->evaluator().validate(versions, [this, versions](double loss) {
    if (!is(RunPhase::kValidating)) return;
    validation_loss_ = loss;
    validation_versions_ = versions;
    take_states();
  });
}

void RunEnd::leave_stage() {
  extent_ = Extent::kWithoutStage;
  trainer_->end_feeding(TrainerPhase::kGivingUp, then(&RunEnd::stop_rounds));
}

void RunEnd::stop_rounds() { env_.authority.give_up(then(&RunEnd::take_states)); }

void RunEnd::fetch_states() {
  states_ = std::make_unique<FinalStates>(
      FinalStates::Environment{env_.loop, *links_, env_.authority, env_.options.config, env_.owner, env_.run_aside},
      [this](FinalStates::Fetched fetched) {
        states_.reset();
        fetched_ = std::move(fetched);
        go(fetched_.unsaved ? RunPhase::kLogging : RunPhase::kSaving);
      });
  states_->start();
}

void RunEnd::save_states() {
  env_.owner.on_states(std::move(fetched_.images), lifetime_.guard([this](const Status& saved) {
    if (!is(RunPhase::kSaving)) return;
    if (saved.ok()) return go(RunPhase::kLogging);
    over(make_error(saved.code(), saved.error().message +
                                      "; the run has not ended and its peers keep their states: save it "
                                      "with `shoal launch --resume " +
                                      env_.options.folder + " --save OTHER`"));
  }));
}

void RunEnd::log_end() {
  lost_ = env_.book.list_rest(extent_ == Extent::kWithoutStage ? kLostWithoutStage : kLostAtEnd);
  trainer_->stop();
  while (env_.book.done().left()) env_.log.append(env_.book.done_record());
  env_.log.append(bytes_of(EndRecord{}));
  env_.log.sync(lifetime_.guard([this](const Status& status) {
    if (!status.ok()) return on_log_failure(status.error());
    if (is(RunPhase::kLogging)) go(RunPhase::kTelling);
  }));
}

void RunEnd::tell_end() {
  for (const CommitBook::Listing& listing : lost_) trainer_->say_lost(listing);
  env_.events.write({.event = EventKind::kEnd, .cause = reason_});
  env_.authority.end(reason_);
  told_at_ = env_.loop.now();
  env_.on_end_sent(reason_);
  linger();
}

// A member that has not answered END is frozen or cut off for a moment, or died just now: after kEndTime it is not
// waited for. A resumed run cannot know which members are away, so it tells the end to whatever peer dials meanwhile.
void RunEnd::linger() {
  env_.loop.after(kEndStep, lifetime_.guard([this] {
    if (!is(RunPhase::kTelling)) return;
    const std::set<Session>& unheard = env_.authority.unheard();
    const bool time_is_up = env_.loop.now() - *told_at_ >= kEndTime, told_again = env_.book.ended();
    if (time_is_up || (unheard.empty() && !told_again)) {
      if (hopeless_ && fetched_.unsaved) hopeless_->message += "; " + fetched_.unsaved->message;
      return over(hopeless_ ? hopeless_ : fetched_.unsaved);
    }
    if (!unheard.empty() && !told_again && !std::exchange(linger_told_, true)) {
      std::string names;
      for (const Session& session : unheard) names += " " + short_name(session);
      env_.owner.on_notice("waiting up to " + whole_seconds(kEndTime) +
                           " for members that have not heard the end:" + names);
    }
    linger();
  }));
}

// ---- with less than the whole ----

void RunEnd::tick(TimePoint now) {
  constexpr double kPauseKept = 0.9;  // of the longest one, whenever something came in
  const bool validating = is(RunPhase::kValidating);
  const std::uint64_t count = env_.book.committed() + (validating ? trainer_->evaluator().passed() : 0);
  // The last rounds are bounded by themselves, and in them nothing comes in.
  const bool counts = is(RunPhase::kTraining) || is(RunPhase::kSettling) || validating;
  Duration longest = came_in_.longest_pause;
  if (came_in_.at != TimePoint{} && counts)
    longest = std::max<Duration>(now - came_in_.at, from_seconds(kPauseKept * seconds_of(longest)));
  if (came_in_.at == TimePoint{} || !counts || count != came_in_.count) came_in_ = {count, now, longest};
  watch_peers(now);
  watch_refusals(now);
  tell_waiting(now);
}

void RunEnd::watch_peers(TimePoint now) {
  const bool fetching = is(RunPhase::kFetching);
  if (!fetching && !may_follow(phase_, RunPhase::kGivingUp)) return;
  // A stage whose next one nobody serves is cut off as well.
  const std::string missing = missing_stages(), cut = missing.empty() ? cut_stages() : "";
  if (!missing.empty() || !cut.empty()) came_in_.at = now;  // a cause that has a name has its own time
  const std::string time = whole_seconds(env_.options.stop_patience);
  const std::string what = fetching ? " has no peer that holds its state: nothing is saved, and the run stands, in "
                                    : " has no serving peer: the run ends without it in ";
  if (too_long(missing, missing_since_, now,
               "stage " + missing + what + time + ", unless one that holds its state comes back"))
    give_up(missing);
  else if (too_long(cut, cut_since_, now,
                    cut + ": what is open is left in " + time + ", unless one of them gets through"))
    cut_off("although " + cut);
  else if (stands_still(now))
    cut_off("although nothing came in for " + whole_seconds(now - came_in_.at) + ", though every stage has peers");
}

// Peers would be asked for it for ever. Behind Ctrl-C whatever stands still is left.
void RunEnd::watch_refusals(TimePoint now) {
  if (!is(RunPhase::kTraining)) return;
  const Duration patience = pause_borne(env_.options.stop_patience, came_in_.longest_pause);
  for (const std::string& line : refusals_.take(env_.authority.status(), env_.book, patience, now))
    env_.owner.on_warning(line);
  if (!refusals_.hopeless(now)) return;
  hopeless_ =
      make_error(ErrorCode::kNonFinite, refusals_.all() + ": nothing more can be learned. HINT: a new run with " +
                                            smaller_numbers_text(env_.options.config));
  finish(refusals_.all());
  cut_off("since all that is under way is refused");
}

// Peers that rest or refuse are there, so that no stage is missing, and what is open would wait for them for ever.
bool RunEnd::stands_still(TimePoint now) const {
  if (!stop_asked_ || extent_ != Extent::kWhole || !(is(RunPhase::kSettling) || is(RunPhase::kValidating)))
    return false;
  return now - std::max(came_in_.at, *stop_asked_) >= pause_borne(env_.options.stop_patience, came_in_.longest_pause);
}

// `what`: what is wrong; empty: nothing. `notice` says so when it begins.
bool RunEnd::too_long(const std::string& what, std::optional<TimePoint>& since, TimePoint now,
                      const std::string& notice) {
  if (what.empty()) since.reset();
  if (what.empty()) return false;
  if (!since) env_.owner.on_notice(notice);
  if (!since) since = now;
  return now - *since >= env_.options.stop_patience;
}

std::string RunEnd::missing_stages() const {
  std::string missing;
  if (!stop_asked_) return missing;
  for (const StageStatus& stage : env_.authority.status()) {
    const bool there =
        is(RunPhase::kFetching) ? !stage.secured || stage.holders > 0 || states_->has(stage.stage) : stage.serving > 0;
    if (!there) missing += (missing.empty() ? "" : ", ") + std::to_string(stage.stage.value);
  }
  return missing;
}

std::string RunEnd::cut_stages() const {
  std::string cut;
  if (is(RunPhase::kFetching) || extent_ != Extent::kWhole || (!stop_asked_ && !is(RunPhase::kValidating))) return cut;
  for (const StageStatus& stage : env_.authority.status())
    if (const std::string stranded = stranded_text(stage, env_.authority.members()); !stranded.empty())
      cut += (cut.empty() ? "" : "; ") + stranded;
  return cut;
}

void RunEnd::give_up(const std::string& missing) {
  const auto stages = env_.authority.status();
  const bool held = std::all_of(stages.begin(), stages.end(), [](const StageStatus& stage) {
    return stage.holders > 0;  // a leaver takes no microbatches and gives its state
  });
  if (is(RunPhase::kFetching) || (env_.options.save && !held))
    return over(make_error(ErrorCode::kNoPeer, "nothing was saved: stage " + missing +
                                                   " has no peer that holds its state; the run has not ended and the "
                                                   "other peers keep their states: go on with `shoal launch --resume " +
                                                   env_.options.folder + "`"));
  env_.owner.on_notice("ending without stage " + missing + ": " +
                       (held ? "its last holder is leaving" : "its state is lost") + ", " +
                       std::to_string(env_.book.open()) + " microbatches stay unfinished");
  if (is(RunPhase::kValidating)) trainer_->evaluator().stop();
  go(RunPhase::kGivingUp);
}

// Every stage is there, so rounds and states are made as always: they need no next stage.
void RunEnd::cut_off(const std::string& how) {
  extent_ = Extent::kCutOff;
  env_.owner.on_notice("ending " + how + ": " + std::to_string(env_.book.open()) +
                       " microbatches stay unfinished, and nothing is validated");
  if (is(RunPhase::kSettling)) trainer_->end_feeding(TrainerPhase::kLeaving, then(&RunEnd::last_rounds));
  if (!is(RunPhase::kValidating)) return;
  trainer_->evaluator().stop();
  take_states();
}

void RunEnd::tell_waiting(TimePoint now) {
  if (!stop_asked_ || phase_ >= RunPhase::kTelling || now - *stop_asked_ < told_after_) return;
  env_.owner.on_notice(
      "not ended " + whole_seconds(told_after_) + " after Ctrl-C: waiting for " + waited_for() +
      ". A second Ctrl-C stops at once and costs this: microbatches under way are computed again, there is "
      "no validation, " +
      (env_.options.save ? "nothing is saved, " : "") + "and the run stands until `shoal launch --resume " +
      env_.options.folder + "` goes on with it; until then its peers keep their states");
  told_after_ *= 2;
}

std::string RunEnd::waited_for() const {
  switch (phase_) {
    case RunPhase::kLastRounds:
      return "the last rounds of its stages";
    case RunPhase::kValidating:
      return "the validation";
    case RunPhase::kFetching:
      return "the state of stage " + std::to_string(states_->fetching().value) + ", to save it";
    case RunPhase::kSaving:
      return "the model and the logs to be on disk";
    case RunPhase::kGivingUp:
    case RunPhase::kLogging:
      return "the logs to be on disk";
    default:
      return std::to_string(env_.book.open()) + " microbatches that are under way";
  }
}

void RunEnd::add_to(RunSummary& summary) const {
  summary.reason = reason_;
  summary.validation_loss = validation_loss_;
  summary.refusals = refusals_.passes();
  summary.validation_versions = validation_versions_;
}

}  // namespace shoal
