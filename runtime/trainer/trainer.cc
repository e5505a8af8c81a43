#include "runtime/trainer/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/fault.h"
#include "common/log.h"
#include "compression/codec.h"

namespace shoal {

namespace {
constexpr Duration kTick = 20ms;
constexpr std::size_t kCommitItemsMax = 512;  // in one message: some tens of KiB at a handful of stages

std::size_t commit_items_max(std::size_t stages) {
  return std::min(RunConfig::paths_in_message(stages), kCommitItemsMax);
}

}  // namespace

Trainer::Trainer(TrainerOptions options, TrainerEnvironment environment, Owner& owner)
    : options_(std::move(options)),
      env_(environment),
      owner_(owner),
      neighbours_(env_.transport, options_.self),
      courier_(*this, neighbours_, {.ahead = StageId(0), .lease = options_.config.lease()}),
      order_(env_.samples.training(), options_.config.run.seed),
      in_flight_(flight_limits(options_.config)),
      evaluations_in_flight_(evaluations_in_flight(options_.config)) {}

Trainer::~Trainer() { stop(); }

void Trainer::stop() {
  lifetime_.end();
  env_.loop.cancel(tick_timer_);
}

void Trainer::start() {
  if (log_failed_ || std::exchange(started_, true)) return;
  started_at_ = line_since_ = env_.loop.now();
  rate_.note(static_cast<double>(env_.book.committed_targets()), started_at_);
  // Steps go on being counted where an earlier life of the trainer was.
  for (std::uint64_t rest = env_.book.committed(); rest >= options_.config.microbatches_of_step(lines_); ++lines_)
    rest -= options_.config.microbatches_of_step(lines_);
  // An earlier life may have died between the durable record and its event line: said again, identical lines are one.
  for (std::uint64_t serial = env_.book.low(); serial < env_.book.next_serial(); ++serial) {
    const MicrobatchId id{options_.trainer_id, serial};
    if (const CommitBook::Logged* logged = env_.book.find(id))
      write(commit_event(id, logged->path, logged->loss_sum / static_cast<double>(logged->targets), logged->targets));
  }
  queue_commits(env_.book.outstanding());
  schedule_tick();
  issue();
}

StepId Trainer::step_of(std::uint64_t serial) const {
  const RunConfig& config = options_.config;
  const std::uint64_t step =
      serial / config.microbatches_of_step(0) + 1;  // every step that is one has the size of the first
  if (config.sync.rule == RuleId::kDiloco && step > config.sync.warm_steps) return StepId(0);
  return StepId(step);
}

bool Trainer::reached_end() const {
  const std::uint64_t end = options_.config.end_targets();
  return end > 0 && env_.book.committed_targets() >= end;
}

bool Trainer::may_issue(std::uint64_t serial) const {
  const RunConfig& config = options_.config;
  const std::uint64_t end = config.end_targets();
  if (finishing_ || (end > 0 && serial * config.targets_per_microbatch() >= end)) return false;
  if (env_.book.open() + deciding_.size() >= in_flight_.at(env_.book.committed_targets())) return false;
  const StepId step = step_of(serial);
  if (step.value == 0) return config.sync.warm_steps == 0 || steps_done_ >= config.sync.warm_steps;
  const std::uint64_t behind = config.sync.mode == SyncMode::kDrain ? 1 : 2;
  return step.value <= steps_done_ + behind;
}

void Trainer::issue() {
  if (!started_ || lifetime_.over()) return;
  while (true) {
    const auto id = env_.book.next();
    if (!id || !may_issue(id->serial)) return;
    const SampleOrder::Item item = order_.at(id->serial);
    auto frame = codec_for(CodecId::kRaw).encode(env_.samples.tokens(item.sample).view(), TensorRole::kTokens);
    SHOAL_CHECK(frame.ok());
    env_.book.issued(*id);
    ++issued_;
    write({.event = EventKind::kIssue,
           .microbatch = *id,
           .step = step_of(id->serial),
           .sample = item.sample,
           .epoch = item.epoch});
    HopSpec spec;
    spec.microbatch = *id;
    spec.sample = item.sample;
    spec.epoch = item.epoch;
    spec.step = step_of(id->serial);
    spec.to = StageId(0);
    spec.above = {options_.self};
    spec.frame_bytes = frame->size();
    if (const auto took = took_.find(item.sample); took != took_.end()) spec.base = {{took->second}, frame->size()};
    frames_[*id] = *std::move(frame);
    courier_.open(std::move(spec), env_.loop.now());
  }
}

void Trainer::on_message(const Remote& from, Message& message, TransferId transfer) {
  if (lifetime_.over()) return;
  // Only members take part: a stranger may not end claims, answer for entries or ask what is decided.
  if (!neighbours_.admits(from)) {
    if (transfer != 0) env_.transport.refuse(from.peer, transfer);
    return;
  }
  if (std::holds_alternative<Gradient>(message) && transfer != 0) {  // stage 0 has no gradient to hand on
    env_.transport.refuse(from.peer, transfer);
    transfer = 0;
  }
  const bool held = courier_.on_message(from, message, transfer, env_.loop.now());
  if (const auto* m = std::get_if<Waiting>(&message)) {
    if (const auto stage = neighbours_.roster().stage_of(from.session))
      if (auto decided = env_.book.ask(m->microbatch, *stage, from.session))
        queue_commits({{from.session, {*std::move(decided)}}});
  }
  if (held) return;
  if (const auto* m = std::get_if<CommitAck>(&message)) {
    for (const CommitAckItem& item : m->items) {
      acks_gone_ += item.state == CommitState::kGone;
      if (const auto listing = env_.book.on_ack(item, from.session)) list(*listing);
    }
    issue();
  }
}

void Trainer::on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes>) {
  if (microbatch.trainer == evaluation_trainer()) return on_evaluated(microbatch, gradient);
  if (gave_up_ || left_open_ || !env_.book.is_open(microbatch)) return;
  if (gradient.path.size() != options_.config.pipeline.stages || env_.book.names_any(gradient.path) ||
      !std::isfinite(gradient.loss_sum) || gradient.targets != options_.config.targets_per_microbatch()) {
    courier_.reject(microbatch, "malformed path or loss", env_.loop.now());
    return;
  }
  decide(microbatch, gradient);
}

void Trainer::decide(const MicrobatchId& microbatch, const Gradient& gradient) {
  env_.log.append(env_.book.log(microbatch, gradient));
  deciding_[microbatch] = gradient;
  SHOAL_FAULT("trainer.logged");
  sync_log([this, microbatch] { on_durable(microbatch); });
}

// A log that failed once takes nothing more, and whoever needs it next may come minutes later: each sync says so.
void Trainer::sync_log(std::function<void()> durable) {
  env_.log.sync(lifetime_.guard([this, durable = std::move(durable)](const Status& status) {
    if (log_failed_) return;
    if (status.ok()) return durable();
    started_ = false;
    log_failed_ = true;
    owner_.on_log_failure(status.error());
  }));
}

void Trainer::on_durable(const MicrobatchId& microbatch) {
  const auto it = deciding_.find(microbatch);
  if (it == deciding_.end()) return;
  const Gradient gradient = std::move(it->second);
  deciding_.erase(it);
  for (const CommitBook::Listing& listing : env_.book.durable(microbatch)) list(listing);
  write(commit_event(microbatch, gradient.path, gradient.loss_sum / static_cast<double>(gradient.targets),
                     gradient.targets));
  queue_commits(env_.book.commits_for(microbatch));
  queue_commits(env_.book.answers(microbatch));
  courier_.commit(microbatch);
  frames_.erase(microbatch);
  count_step(microbatch, gradient);
  check_settled();
  issue();
}

void Trainer::queue_commits(const std::map<Session, std::vector<CommitItem>>& commits) {
  for (const auto& [session, items] : commits) {
    auto& queue = commits_[session];
    queue.insert(queue.end(), items.begin(), items.end());
  }
}

void Trainer::flush_commits() {
  for (auto& [session, items] : std::exchange(commits_, {})) {
    const std::size_t batch = commit_items_max(options_.config.pipeline.stages);
    for (std::size_t first = 0; first < items.size(); first += batch) {
      Commit message;
      message.items.assign(items.begin() + static_cast<std::ptrdiff_t>(first),
                           items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), first + batch)));
      message.lows = {{options_.trainer_id, env_.book.low()}};
      message.run_targets = env_.book.committed_targets();
      message.run_loss = last_loss_;
      neighbours_.send(session, std::move(message));
    }
  }
}

void Trainer::schedule_tick() {
  tick_timer_ = env_.loop.after(kTick, lifetime_.guard([this] {
    schedule_tick();
    tick();
  }));
}

void Trainer::tick() {
  env_.loop.name_callback("trainer tick");
  const TimePoint now = env_.loop.now();
  flush_commits();
  courier_.tick(now, {{options_.trainer_id, env_.book.low()},
                      {evaluation_trainer(), evaluation_ ? evaluation_->first_serial : evaluations_}});
  if (now >= next_repeat_) {
    next_repeat_ = now + options_.config.lease() / 4;
    queue_commits(env_.book.outstanding());
    if (env_.book.done_dirty()) {  // lazily: what is lost of it is found again after a restart
      env_.log.append(env_.book.done_record());
      sync_log([this] { env_.book.done_durable(); });
    }
  }
  issue();
}

void Trainer::on_link_up(const Remote& remote) { courier_.on_link_up(remote, env_.loop.now()); }

void Trainer::on_link_down(const Remote& remote) { courier_.on_link_down(remote, env_.loop.now()); }

void Trainer::on_members(const MemberList& list) {
  courier_.on_members(list, env_.loop.now());
  issue();
}

// ---- HopOwner ----

std::vector<Bytes> Trainer::frames_of(const Session&, const Forward& message, bool) {
  const auto frame = frames_.find(message.microbatch);
  SHOAL_CHECK(frame != frames_.end());
  return {frame->second};
}

// Tokens have no bases, but the peers after them keep some of this sample: it takes the same way again.
void Trainer::on_branch(const MicrobatchId& microbatch, const Session& to, const Lease&, BranchEnd end) {
  if (options_.config.keeps_bases() && end == BranchEnd::kSettled) took_[courier_.sample_of(microbatch)] = to;
}

void Trainer::on_parked(const MicrobatchId&, StageId stage, bool parked) { owner_.on_parked(stage, parked); }

}  // namespace shoal
