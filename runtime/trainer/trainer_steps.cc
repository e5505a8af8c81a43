// What follows from decided microbatches: steps, listings, the end.
#include <algorithm>

#include "common/log.h"
#include "runtime/trainer/trainer.h"

namespace shoal {

namespace {
EventRecord event_of(EventKind event, const CommitBook::Listing& listing) {
  return {.event = event,
          .microbatch = listing.microbatch,
          .stage = listing.stage,
          .entry_name = listing.entry_name,
          .cause = listing.cause};
}
}  // namespace

void Trainer::count_step(const MicrobatchId& microbatch, const Gradient& gradient) {
  line_loss_ += gradient.loss_sum;
  line_targets_ += gradient.targets;
  if (++line_microbatches_ >= options_.config.microbatches_of_step(lines_)) {
    const TimePoint now = env_.loop.now();
    TrainLine line;
    line.step = ++lines_;
    line.loss = last_loss_ = line_loss_ / static_cast<double>(line_targets_);
    line.tokens_per_s = static_cast<double>(line_targets_) / std::max(1e-9, seconds_of(now - line_since_));
    line.tokens = env_.book.committed_targets();
    for (std::uint16_t k = 0; k < options_.config.pipeline.stages; ++k)
      line.peers.push_back(static_cast<std::uint32_t>(neighbours_.roster().serving(StageId(k)).size()));
    line.elapsed = now - started_at_;
    line.validation = last_estimate_;
    note_end(line, now);
    line_since_ = now;
    line_loss_ = 0;
    line_targets_ = line_microbatches_ = 0;
    write({.event = EventKind::kTrain, .step = StepId(line.step), .loss = line.loss, .targets = line.tokens});
    owner_.on_train_line(line);
    owner_.on_progress(line.tokens, line.loss, line.step);
    if (options_.config.validates_after(line.step)) estimate(StepId(line.step));
  }
  const StepId step = step_of(microbatch.serial);
  if (step.value == 0) return;
  ++step_logged_[step.value];
  announce_whole();
}

// Where the line stands in the run, and the schedule's rate there.
void Trainer::note_end(TrainLine& line, TimePoint now) {
  const RunConfig& config = options_.config;
  line.lr = config.inner_step(line.step, config.targets_per_microbatch(), line.tokens, config.gradients_late()).lr;
  rate_.note(static_cast<double>(line.tokens), now);
  line.end_tokens = config.end_targets();
  if (line.end_tokens == 0) return;
  const std::uint64_t left = line.end_tokens > line.tokens ? line.end_tokens - line.tokens : 0;
  const std::uint64_t of_step = config.microbatches_of_step(line.step) * config.targets_per_microbatch();
  line.steps = line.step + (left + of_step - 1) / of_step;
  line.left = rate_.time_for(static_cast<double>(left));
}

// Steps are announced in their order, also when a later one was whole first.
void Trainer::announce_whole() {
  const std::uint64_t count = options_.config.microbatches_of_step(0);
  for (auto it = step_logged_.find(announced_ + 1); it != step_logged_.end() && it->second == count;
       it = step_logged_.find(announced_ + 1))
    announce(StepId(it->first));
}

void Trainer::announce(StepId step) {
  Step message;
  message.step = step;
  message.run_targets = env_.book.committed_targets();
  message.run_loss = last_loss_;
  const std::uint64_t count = options_.config.microbatches_of_step(0);
  std::vector<MicrobatchId> ids;
  for (std::uint64_t i = 0; i < count; ++i) ids.push_back({options_.trainer_id, (step.value - 1) * count + i});
  message.winners = env_.book.paths(ids);
  if (message.winners.empty()) return;
  for (const CommitItem& item : message.winners) message.targets += env_.book.find(item.microbatch)->targets;
  announced_ = std::max(announced_, step.value);
  owner_.on_step(message);
}

void Trainer::announce_steps() {
  std::map<std::uint64_t, std::uint64_t> logged;
  const std::uint64_t count = options_.config.microbatches_of_step(0);
  for (std::uint64_t serial = env_.book.low(); serial < env_.book.next_serial(); ++serial)
    if (step_of(serial).value > 0 && env_.book.find({options_.trainer_id, serial}) != nullptr)
      ++logged[step_of(serial).value];
  if (step_of(env_.book.low()).value > 0) steps_done_ = std::max(steps_done_, env_.book.low() / count);
  for (const auto& [step, seen] : logged) {
    const std::uint64_t first = (step - 1) * count;
    const std::uint64_t below_low = env_.book.low() > first ? std::min(count, env_.book.low() - first) : 0;
    step_logged_[step] = seen + below_low;
  }
  announced_ = steps_done_;
  announce_whole();
}

void Trainer::on_round_commit(const RoundCommit& commit) {
  const auto contradictions = env_.book.on_round_commit(
      commit, [this](const MicrobatchId& microbatch, StageId stage, const EntryName& entry_name) {
        write({.event = EventKind::kMerged, .microbatch = microbatch, .stage = stage, .entry_name = entry_name});
      });
  for (const CommitBook::Listing& listing : contradictions) {
    write(event_of(EventKind::kContradiction, listing));
    log_error("microbatch ", listing.microbatch, " of stage ", listing.stage, " was lost (", listing.cause,
              ") and a committed round contains it");
  }
  if (commit.step.value > steps_done_) {
    step_stages_[commit.step.value].insert(commit.stage.value);
    for (auto it = step_stages_.begin(); it != step_stages_.end() && it->first == steps_done_ + 1 &&
                                         it->second.size() == options_.config.pipeline.stages;
         it = step_stages_.erase(it))
      ++steps_done_;
  }
  issue();
}

void Trainer::on_session_over(const Session& session, const std::string& why) {
  for (const CommitBook::Listing& listing : env_.book.on_session_over(session, why)) list(listing);
  issue();
}

std::vector<CommitBook::Listing> Trainer::list_rest(const std::string& cause) { return env_.book.list_rest(cause); }

void Trainer::say_lost(const std::vector<CommitBook::Listing>& listings) {
  for (const CommitBook::Listing& listing : listings) list(listing);
}

void Trainer::list(const CommitBook::Listing& listing) {
  write(event_of(EventKind::kLost, listing));
  owner_.on_lost(listing);
}

void Trainer::finish(std::function<void()> settled) {
  finishing_ = true;
  if (evaluation_ && evaluation_->estimate) stop_validation();
  settled_ = std::move(settled);
  start();  // a resumed life may end before every stage had a peer: what was decided before it is told all the same
  check_settled();
}

void Trainer::give_up_open(std::function<void()> settled) {
  gave_up_ = true;
  finish(std::move(settled));
}

void Trainer::leave_open(std::function<void()> settled) {
  left_open_ = true;
  release_open(options_.trainer_id);
  finish(std::move(settled));
}

void Trainer::release_open(std::uint64_t trainer) {
  for (auto it = frames_.begin(); it != frames_.end();) {
    const bool stays = it->first.trainer != trainer || deciding_.contains(it->first);
    if (!stays) courier_.close(it->first, ReleaseWhy::kOver);
    it = stays ? std::next(it) : frames_.erase(it);
  }
}

void Trainer::check_settled() {
  if (!finishing_ || !settled_ || !deciding_.empty()) return;
  if (!gave_up_ && !left_open_ && env_.book.open() > 0) return;
  // A step that the end cut short is a step of those microbatches that it has.
  for (const auto& [step, logged] : step_logged_)
    if (step > announced_ && !gave_up_) announce(StepId(step));
  flush_commits();
  env_.loop.post(lifetime_.guard(std::exchange(settled_, nullptr)));
}

}  // namespace shoal
