#include "runtime/trainer/trainer.h"

#include <algorithm>
#include <cmath>

#include "common/fault.h"
#include "common/log.h"
#include "compression/codec.h"

namespace shoal {

namespace {
constexpr Duration kTick = 20ms;
constexpr Duration kBeat = 500ms;
constexpr std::size_t kCommitItemsMax = 512;  // in one message: some tens of KiB at a handful of stages

std::size_t commit_items_max(std::size_t stages) {
  return std::min(RunConfig::paths_in_message(stages), kCommitItemsMax);
}
}  // namespace

Trainer::Trainer(TrainerOptions options, TrainerEnvironment environment, Owner& owner)
    : options_(std::move(options)),
      env_(environment),
      owner_(owner),
      policy_(make_rendezvous_policy()),
      courier_(*this, *policy_, rates_, options_.self),
      order_(env_.samples.training(), options_.config.run.seed) {}

Trainer::~Trainer() { stop(); }

void Trainer::stop() {
  lifetime_.end();
  env_.loop.cancel(tick_timer_);
}

void Trainer::start() {
  started_ = true;
  started_at_ = line_since_ = env_.loop.now();
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
  if (env_.book.open() + deciding_.size() >= config.in_flight()) return false;
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
    write({.event = EventName::kIssue,
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
    frames_[*id] = *std::move(frame);
    courier_.open(std::move(spec), env_.loop.now());
  }
}

void Trainer::on_message(const Remote& from, Message& message, TransferId transfer) {
  if (lifetime_.over()) return;
  // Only members take part: a stranger may not end claims, answer for entries or ask what is decided.
  if (roster_.peer_of(from.session) != from.peer) {
    if (transfer != 0) env_.transport.refuse(from.peer, transfer);
    return;
  }
  const TimePoint now = env_.loop.now();
  courier_.on_heard(from.session, now);
  if (auto* m = std::get_if<Gradient>(&message)) {
    if (transfer != 0) env_.transport.refuse(from.peer, transfer);  // stage 0 has no gradient to hand on
    if (courier_.wants(from.session, *m, now)) courier_.on_gradient(from.session, *m, {}, now);
  } else if (auto* m = std::get_if<Busy>(&message)) {
    courier_.on_busy(from.session, *m, now);
  } else if (auto* m = std::get_if<Have>(&message)) {
    courier_.on_have(from.session, *m, now);
  } else if (auto* m = std::get_if<Gone>(&message)) {
    courier_.on_gone(from.session, *m, now);
  } else if (auto* m = std::get_if<NeedKeyFrame>(&message)) {
    courier_.on_need_key_frame(from.session, *m, now);
  } else if (auto* m = std::get_if<Progress>(&message)) {
    courier_.on_progress(from.session, *m, now);
  } else if (auto* m = std::get_if<Waiting>(&message)) {
    courier_.on_waiting(from.session, *m, now);
    if (const auto stage = roster_.stage_of(from.session))
      if (auto decided = env_.book.ask(m->microbatch, *stage, from.session))
        queue_commits({{from.session, {*std::move(decided)}}});
  } else if (auto* m = std::get_if<CommitAck>(&message)) {
    for (const CommitAckItem& item : m->items) {
      acks_gone_ += item.state == CommitState::kGone;
      if (const auto listing = env_.book.on_ack(item, from.session)) list(*listing);
    }
    issue();
  }
}

void Trainer::on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes>) {
  if (microbatch.trainer == evaluation_trainer()) {
    if (!evaluation_) return;
    evaluation_->loss_sum += gradient.loss_sum;
    evaluation_->targets += gradient.targets;
    ++evaluation_->done;
    env_.loop.post(lifetime_.guard([this, microbatch] {
      courier_.forget(microbatch);
      frames_.erase(microbatch);
      next_evaluations();
    }));
    return;
  }
  if (gave_up_ || !env_.book.is_open(microbatch)) return;
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
  env_.log.sync(lifetime_.guard([this, microbatch](const Status& status) { on_durable(microbatch, status); }));
}

void Trainer::on_durable(const MicrobatchId& microbatch, const Status& status) {
  if (lifetime_.over()) return;
  if (!status.ok()) {
    started_ = false;
    owner_.on_log_failure(status.error());
    return;
  }
  const auto it = deciding_.find(microbatch);
  if (it == deciding_.end()) return;
  const Gradient gradient = std::move(it->second);
  deciding_.erase(it);
  for (const CommitBook::Listing& listing : env_.book.durable(microbatch)) list(listing);
  write(commit_event(microbatch, gradient.path, gradient.loss_sum / static_cast<double>(gradient.targets),
                     gradient.targets));
  queue_commits(env_.book.commits_for(microbatch));
  queue_commits(env_.book.answers(microbatch));
  courier_.commit(microbatch);  // the hop is known until low passes: news of the winner that is on its way must not be
                                // answered Release
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
      send(session, std::move(message));
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
  const TimePoint now = env_.loop.now();
  courier_.tick(now);
  courier_.forget_below(options_.trainer_id, env_.book.low());
  flush_commits();
  if (now >= next_renewal_) {
    next_renewal_ = now + options_.config.lease() / 6;
    auto renewals = courier_.renewals();
    for (const StageMembers& stage : roster_.list().stages)  // everybody learns the low-water mark
      for (const Member& member : stage.members) renewals.try_emplace(member.session);
    for (auto& [session, leases] : renewals) {
      Renew message;
      message.leases = std::move(leases);
      message.lows = {{options_.trainer_id, env_.book.low()}, {evaluation_trainer(), evaluation_ ? 0 : evaluations_}};
      send(session, std::move(message));
    }
  }
  if (now >= next_repeat_) {
    next_repeat_ = now + options_.config.lease() / 4;
    queue_commits(env_.book.outstanding());
    if (env_.book.done_dirty()) {  // lazily: what is lost of it is found again after a restart
      env_.log.append(env_.book.done_record());
      env_.log.sync(lifetime_.guard([this](const Status& status) {
        if (status.ok()) env_.book.done_durable();
      }));
    }
  }
  if (now >= next_beat_) {
    next_beat_ = now + kBeat;
    for (const Session& session : roster_.candidates(StageId(0), now))
      if (const auto peer = roster_.peer_of(session)) {
        const LinkStats link = env_.transport.stats(*peer);
        if (link.up) rates_.set_link(session, link.bytes_per_second, link.rtt);
      }
  }
  issue();
}

void Trainer::on_link_up(const Remote& remote) {
  roster_.note_up(remote.session);
  courier_.on_heard(remote.session, env_.loop.now());
}

void Trainer::on_link_down(const Remote& remote) {
  Session session = remote.session;
  if (session == Session{})
    if (const auto member = roster_.session_of(remote.peer)) session = *member;
  roster_.note_down(session, env_.loop.now());
  courier_.on_link_down(session, env_.loop.now());
}

void Trainer::on_members(const MemberList& list) {
  const Roster::Change change = roster_.update(list);
  for (const StageMembers& stage : list.stages)
    for (const Member& member : stage.members)
      if (!member.addresses.empty()) env_.transport.learn(member.peer, member.addresses);
  for (const Session& session : change.over) courier_.on_session_over(session, env_.loop.now());
  issue();
}

// ---- CourierPort ----

std::vector<Session> Trainer::candidates(StageId stage) { return roster_.candidates(stage, env_.loop.now()); }

std::uint64_t Trainer::low_of(std::uint64_t trainer) { return trainer == options_.trainer_id ? env_.book.low() : 0; }

Result<TransferId> Trainer::send_to(const Session& to, Message message, std::vector<Bytes> frames) {
  const auto peer = roster_.peer_of(to);
  if (!peer) return make_error(ErrorCode::kUnreachable, "session " + short_name(to) + " is no member");
  const auto remote = env_.transport.remote(*peer);
  if (remote && remote->session != to) return make_error(ErrorCode::kStale, "session " + short_name(to) + " is over");
  return env_.transport.send(*peer, std::move(message), std::move(frames));
}

Result<TransferId> Trainer::send_forward(const Session& to, Forward message, bool) {
  const auto frame = frames_.find(message.microbatch);
  SHOAL_CHECK(frame != frames_.end());
  return send_to(to, std::move(message), {frame->second});
}

void Trainer::send(const Session& to, Message message) {
  if (const auto sent = send_to(to, std::move(message), {}); !sent.ok()) log_debug("not sent: ", sent.error().message);
}

void Trainer::drop_transfer(const Session& to, TransferId transfer) {
  if (const auto peer = roster_.peer_of(to)) env_.transport.drop(*peer, transfer);
}

void Trainer::on_parked(const MicrobatchId&, StageId stage, bool parked) { owner_.on_parked(stage, parked); }

}  // namespace shoal
