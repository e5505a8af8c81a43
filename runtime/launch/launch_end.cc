// How a run ends: settling, last rounds, validation, states, END.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "common/log.h"
#include "events/lost_causes.h"
#include "runtime/launch/launch.h"
#include "runtime/plan/flight_plan.h"
#include "runtime/plan/split_limits.h"

namespace shoal {

namespace {
constexpr Duration kAskAgain = 200ms;  // for the list that names the last rounds' states
constexpr Duration kEndStep = 500ms;   // END has left our queues by then
constexpr Duration kEndTime = 10s;     // for who is silent; a resumed run that was over already tells it for so long
std::string whole_seconds(Duration time) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(time).count()) + " s";
}
}  // namespace

void Launch::finish(const std::string& reason) {
  if (finishing_) return;
  if (!trainer_) {
    finish_wanted_ = reason;
    return;
  }
  finishing_ = true;
  summary_.reason = reason;
  owner_.on_notice("finishing: " + reason);
  trainer_->finish([this] { last_rounds(); });
}

void Launch::stop(const std::string& reason) {
  if (!stop_asked_) stop_asked_ = env_.loop.now();
  finish(reason);
}

std::string Launch::waited_for() const {
  if (past_states_) return options_.save ? "the model and the logs to be on disk" : "the logs to be on disk";
  if (fetching_) return "the state of stage " + std::to_string(next_state_) + ", to save it";
  if (validating_) return "the validation";
  if (in_last_rounds_) return "the last rounds of its stages";
  return std::to_string(book_->open()) + " microbatches that are under way";
}

void Launch::tell_waiting(TimePoint now) {
  if (!stop_asked_ || over_ || ended_at_ || now - *stop_asked_ < settle_told_) return;
  owner_.on_notice(
      "not ended " + whole_seconds(settle_told_) + " after Ctrl-C: waiting for " + waited_for() +
      ". A second Ctrl-C stops at once and costs this: microbatches under way are computed again, there is "
      "no validation, " +
      (options_.save ? "nothing is saved, " : "") + "and the run stands until `shoal launch --resume " +
      options_.folder + "` goes on with it; until then its peers keep their states");
  settle_told_ *= 2;
}

void Launch::watch_holders(TimePoint now) {
  if (past_states_ || (gave_up_ && !fetching_)) return;
  std::string missing, cut;
  for (const StageStatus& stage : authority_->status()) {
    if (!fetching_ && !cut_off_ && (stop_asked_ || validating_))
      if (const std::string stranded = stranded_text(stage); !stranded.empty())
        cut += (cut.empty() ? "" : "; ") + stranded;
    const bool fetched = !stage.secured || stage.holders > 0 || stage.stage.value < next_state_;
    if (!stop_asked_ || (fetching_ ? fetched : stage.serving > 0)) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(stage.stage.value);
  }
  if (!missing.empty()) cut.clear();  // who waits for a stage that nobody serves is stranded as well
  if (missing.empty()) missing_since_.reset();
  if (cut.empty()) cut_since_.reset();
  const auto is_over = [&](std::optional<TimePoint>& since, const std::string& notice) {
    if (!since) owner_.on_notice(notice);
    if (!since) since = now;
    return now - *since >= options_.stop_patience;
  };
  const std::string time = whole_seconds(options_.stop_patience);
  const std::string what = fetching_ ? " has no peer that holds its state: nothing is saved, and the run stands, in "
                                     : " has no serving peer: the run ends without it in ";
  if (!missing.empty()) {
    if (is_over(missing_since_, "stage " + missing + what + time + ", unless one that holds its state comes back"))
      give_up(missing);
  } else if (!cut.empty()) {
    if (is_over(cut_since_, cut + ": what is open is left in " + time + ", unless one of them gets through"))
      end_cut_off(cut);
  }
}

// Every stage is there, so rounds and states are made as always: they need no next stage.
void Launch::end_cut_off(const std::string& who) {
  cut_off_ = true;
  cut_since_.reset();
  owner_.on_notice("ending although " + who + ": " + std::to_string(book_->open()) +
                   " microbatches stay unfinished, and nothing is validated");
  if (std::exchange(validating_, false)) {
    trainer_->stop_validation();
    return fetch_states();
  }
  trainer_->leave_open(lifetime_.guard([this] {
    if (!over_) last_rounds();
  }));
}

void Launch::give_up(const std::string& missing) {
  gave_up_ = true;
  missing_since_.reset();
  fetcher_.reset();
  const auto stages = authority_->status();
  const bool held = std::all_of(stages.begin(), stages.end(), [](const StageStatus& stage) {
    return stage.holders > 0;  // a leaver takes no microbatches and gives its state
  });
  if (options_.save && (fetching_ || !held))
    return done(make_error(ErrorCode::kNoPeer, "nothing was saved: stage " + missing +
                                                   " has no peer that holds its state; the run has not ended and the "
                                                   "other peers keep their states: go on with `shoal launch --resume " +
                                                   options_.folder + "`"));
  owner_.on_notice("ending without stage " + missing + ": " +
                   (held ? "its last holder is leaving" : "its state is lost") + ", " + std::to_string(book_->open()) +
                   " microbatches stay unfinished");
  trainer_->give_up_open(lifetime_.guard([this] {
    if (over_) return;
    authority_->give_up(lifetime_.guard([this] {
      if (!over_) later([this] { options_.save ? fetch_states() : end(); });
    }));
  }));
}

void Launch::last_rounds() {
  if (gave_up_) return;
  in_last_rounds_ = true;
  authority_->finish(lifetime_.guard([this] { later([this] { validate(); }); }));
}

void Launch::validate() {
  if (gave_up_) return;
  if (!stages_ready_ || cut_off_) return fetch_states();
  owner_.on_notice("validating");
  validating_ = true;
  std::vector<Version> versions;  // the last ones: what is saved next has them too
  for (const StageStatus& stage : authority_->status()) versions.push_back(stage.version);
  trainer_->validate(versions, [this, versions](Result<double> loss) {
    validating_ = false;
    if (loss.ok()) {
      summary_.validation_loss = *loss;
      summary_.validation_versions = versions;
    } else {
      owner_.on_notice("no validation: " + loss.error().message);
    }
    if (!gave_up_) fetch_states();
  });
}

void Launch::fetch_states() {
  if (over_) return;
  fetching_ = true;
  const auto& stages = authority_->members().stages;
  past_states_ = !options_.save || next_state_ >= stages.size();
  if (past_states_) return later([this] { options_.save ? save_states() : end(); });
  const StageMembers& stage = stages[next_state_];
  for (const StageStatus& now : authority_->status()) {
    if (now.stage != stage.stage || (now.secured == stage.secured && now.version == stage.version)) continue;
    // The list that names the last round's state is still on its way to the disk.
    env_.loop.after(kAskAgain, lifetime_.guard([this] { fetch_states(); }));
    return;
  }
  if (!stage.secured) {
    unsaved_ = make_error(ErrorCode::kMissing, "nothing was saved: stage " + std::to_string(stage.stage.value) +
                                                   " never secured a round. HINT: let the run make more steps");
    owner_.on_notice(unsaved_->message);
    ++next_state_;
    return later([this] { fetch_states(); });
  }
  FetcherOptions fetching;
  // Only of the torch executor the manifest tells how much a stage holds.
  if (options_.config.executor.kind == ExecutorKind::kTorch)
    fetching.sizes = image_sizes(payload_bytes(options_.config).at(next_state_) / sizeof(float));
  fetcher_ = std::make_unique<StateFetcher>(fetching, static_cast<FetcherHost&>(*this), env_.loop, stage.stage);
  ask_donors();
}

// Of the newest list: who was there at first may go, and who joins meanwhile has the state too.
void Launch::ask_donors() {
  const StageMembers& stage = authority_->members().stages[next_state_];
  std::vector<PeerId> donors;
  for (const Member& member : stage.members)
    if (may_donate(member)) donors.push_back(member.peer);
  fetcher_->fetch(stage.version, stage.digest, std::move(donors));
}

void Launch::on_fetched(Bytes image) {
  states_[authority_->members().stages[next_state_].stage.value] = std::move(image);
  ++next_state_;
  later([this] {
    fetcher_.reset();
    fetch_states();
  });
}

void Launch::on_waiting(const std::string& why) { owner_.on_notice("saving: " + why); }

// The peers are asked to keep their states until these are on disk: afterwards nobody has them.
void Launch::save_states() {
  if (unsaved_) return end();
  owner_.on_states(std::move(states_), lifetime_.guard([this](const Status& saved) {
    if (over_) return;
    if (saved.ok()) return end();
    done(make_error(saved.code(), saved.error().message +
                                      "; the run has not ended and its peers keep their states: save it "
                                      "with `shoal launch --resume " +
                                      options_.folder + " --save OTHER`"));
  }));
}

void Launch::end() {
  auto lost = trainer_->list_rest(std::string(gave_up_ ? kLostWithoutStage : kLostAtEnd));
  trainer_->stop();
  while (book_->done_left()) trainer_log_->append(book_->done_record());
  trainer_log_->append(book_->end_record());
  trainer_log_->sync(lifetime_.guard([this, lost = std::move(lost)](const Status& status) {
    if (!status.ok()) return on_log_failure(status.error());
    on_end_durable(lost);
  }));
}

void Launch::on_end_durable(const std::vector<CommitBook::Listing>& lost) {
  trainer_->say_lost(lost);
  write({.event = EventKind::kEnd, .cause = summary_.reason});
  say_end();
}

// An earlier life ended the run and may have died before it said so.
void Launch::end_again() {
  finishing_ = true;
  summary_.reason = "the run was over already";
  owner_.on_notice("this run has ended already: peers that were away are told for " + whole_seconds(kEndTime));
  if (options_.save)
    unsaved_ =
        make_error(ErrorCode::kGone, "nothing was saved: the run had ended, and its peers keep no states any more");
  on_end_durable(book_->left_at_end());
}

void Launch::say_end() {
  authority_->end(summary_.reason);
  ended_at_ = env_.loop.now();
  watch_stages();
  announce();
  env_.loop.after(kEndStep, lifetime_.guard([this] { linger(); }));
}

// Who is a member and has not answered END is frozen or cut off for a moment, or died just now: after the membership
// time it is not waited for. A resumed run cannot know who is away, so it tells it to whoever dials all the time.
void Launch::linger() {
  if (over_) return;
  const std::set<Session>& unheard = authority_->unheard();
  const bool time_is_up = env_.loop.now() - *ended_at_ >= kEndTime;
  if (time_is_up || (unheard.empty() && !book_->ended())) return done(unsaved_);
  if (!unheard.empty() && !book_->ended() && !std::exchange(linger_told_, true)) {
    std::string names;
    for (const Session& session : unheard) names += " " + short_name(session);
    owner_.on_notice("waiting up to " + whole_seconds(kEndTime) + " for members that have not heard the end:" + names);
  }
  env_.loop.after(kEndStep, lifetime_.guard([this] { linger(); }));
}

void Launch::done(std::optional<Error> error) {
  if (over_) return;
  over_ = true;
  if (transport_) write_bytes();
  env_.loop.cancel(timer_);
  // The word of the end stays there until it expires.
  if (env_.directory != nullptr && !ended_at_) {
    const RunId run{options_.key.id().bytes};
    env_.directory->withdraw(run_key_name(run));
    for (std::size_t part = 0; part < standing_parts_; ++part)
      env_.directory->withdraw(standing_key(run, static_cast<std::uint16_t>(part)));
  }
  owner_.on_finished(summary(), std::move(error));
}

RunSummary Launch::summary() const {
  RunSummary result = summary_;
  result.committed = book_->committed();
  result.unfinished = book_->open();
  result.issued = result.committed + result.unfinished;
  result.lost = book_->lost();
  const RoundTally& tally = authority_->tally();
  result.rounds = tally.rounds;
  result.taken_back = tally.taken_back;
  result.faults = tally.faults;
  for (const auto& [of, microbatches] : tally.shares) result.shares.push_back({of.first, of.second, microbatches});
  for (const auto& [of, pairs] : book_->losses())
    result.losses.push_back({std::get<0>(of), std::get<1>(of), std::get<2>(of), pairs});
  result.run_targets = book_->committed_targets();
  result.delay = delays_.largest();
  result.loss_bound_microbatches = options_.config.id_window();
  result.loss_bound_targets = result.loss_bound_microbatches * options_.config.targets_per_microbatch();
  result.full_in_flight_share = full_in_flight_share(options_.config, result.run_targets);
  if (!trainer_) return result;  // not started
  result.asked_again = trainer_->courier_counters().branches;
  result.acks_gone = trainer_->acks_gone();
  result.sent_bytes = transport_->counters().sent_bytes;
  return result;
}

}  // namespace shoal
