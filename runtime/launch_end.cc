// How a run ends: settling, last rounds, validation, states, END.
#include "common/log.h"
#include "runtime/launch.h"

namespace shoal {

namespace {
constexpr Duration kAskAgain = 200ms;  // for the list that names the last rounds' states
constexpr Duration kEndTime = 3s;      // a resumed run that was over already tells it for so long
}  // namespace

void Launch::finish(const std::string& reason) {
  if (finishing_) return;
  finishing_ = true;
  summary_.reason = reason;
  owner_.on_notice("finishing: " + reason);
  trainer_->finish([this] { last_rounds(); });
}

void Launch::last_rounds() {
  authority_->finish([this, alive = alive_] {
    if (*alive) later([this] { validate(); });
  });
}

void Launch::validate() {
  if (!stages_ready_) return fetch_states();
  owner_.on_notice("validating");
  trainer_->validate([this](Result<double> loss) {
    if (loss.ok()) {
      summary_.validation_loss = *loss;
    } else {
      owner_.on_notice("no validation: " + loss.error().message);
    }
    fetch_states();
  });
}

void Launch::fetch_states() {
  const auto& stages = authority_->members().stages;
  if (!options_.save || next_state_ >= stages.size()) return later([this] { end(); });
  const StageMembers& stage = stages[next_state_];
  for (const StageStatus& now : authority_->status()) {
    if (now.stage != stage.stage || (now.secured == stage.secured && now.version == stage.version)) continue;
    // The list that names the last round's state is still on its way to the disk.
    env_.loop.after(kAskAgain, [this, alive = alive_] {
      if (*alive && !over_) fetch_states();
    });
    return;
  }
  if (!stage.secured) {
    owner_.on_notice("stage " + std::to_string(stage.stage.value) +
                     " never secured a round: there is nothing of it to save");
    ++next_state_;
    return later([this] { fetch_states(); });
  }
  std::vector<PeerId> donors;
  for (const Member& member : stage.members)
    if (may_donate(member)) donors.push_back(member.peer);
  fetcher_ = std::make_unique<StateFetcher>(FetcherOptions{}, static_cast<FetcherHost&>(*this), env_.loop, stage.stage);
  fetcher_->fetch(stage.version, stage.digest, std::move(donors));
}

void Launch::on_fetched(Bytes image) {
  summary_.states[authority_->members().stages[next_state_].stage.value] = std::move(image);
  ++next_state_;
  later([this] {
    fetcher_.reset();
    fetch_states();
  });
}

void Launch::on_waiting(const std::string& why) { owner_.on_notice("saving: " + why); }

void Launch::end() {
  trainer_->list_rest("the run ended");
  trainer_->stop();
  EventRecord record;
  record.event = "end";
  record.cause = summary_.reason;
  env_.events.write(record);
  if (book_->done_dirty()) trainer_log_->append(book_->done_record());
  trainer_log_->append(book_->end_record());
  trainer_log_->sync([this, alive = alive_](Status) {
    if (*alive) say_end();
  });
}

void Launch::say_end() {
  authority_->end(summary_.reason);
  // END has left our queues by then; who was away hears it when it asks again.
  env_.loop.after(book_->ended() ? kEndTime : 500ms, [this, alive = alive_] {
    if (*alive) done(std::nullopt);
  });
}

void Launch::done(std::optional<Error> error) {
  if (over_) return;
  over_ = true;
  write_bytes();
  env_.loop.cancel(timer_);
  if (env_.directory != nullptr) env_.directory->withdraw(run_key_name(RunId{options_.key.id().bytes}));
  owner_.on_finished(summary(), std::move(error));
}

RunSummary Launch::summary() const {
  RunSummary result = summary_;
  result.issued = trainer_->issued();
  result.committed = book_->committed();
  result.unfinished = book_->open();
  result.retried = trainer_->courier_counters().branches;
  result.listed = book_->listed();
  result.acks_gone = trainer_->acks_gone();
  result.run_targets = book_->committed_targets();
  result.sent_bytes = transport_->counters().sent_bytes;
  const RunConfig& config = options_.config;
  result.loss_bound_targets = config.sync.rule == RuleId::kDiloco
                                  ? config.targets_per_round() + 2 * config.sync.inner_batch
                                  : 2 * config.microbatches_of_step(0) * config.targets_per_microbatch();
  return result;
}

}  // namespace shoal
