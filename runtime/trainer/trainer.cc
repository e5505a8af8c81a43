#include "runtime/trainer/trainer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/fault.h"
#include "common/log.h"
#include "common/phase_set.h"
#include "compression/codec.h"
#include "router/loss_claim.h"

namespace shoal {

namespace {
constexpr Duration kTick = 20ms;
constexpr std::size_t kCommitItemsMax = 512;  // in one message: some tens of KiB at a handful of stages

std::size_t commit_items_max(std::size_t stages) {
  return std::min(RunConfig::paths_in_message(stages), kCommitItemsMax);
}

const PhaseRow<TrainerPhase>& row_of(TrainerPhase phase) {
  using enum TrainerPhase;
  // clang-format off
  static constexpr std::array<PhaseRow<TrainerPhase>, 7> kRows = {{  // in the order of TrainerPhase
      {"waiting",   {kFeeding, kSettling, kLeaving, kGivingUp, kFailed, kStopped}},
      {"feeding",   {kSettling, kLeaving, kGivingUp, kFailed, kStopped}},
      {"settling",  {kLeaving, kGivingUp, kFailed, kStopped}},
      {"leaving",   {kGivingUp, kFailed, kStopped}},
      {"giving up", {kFailed, kStopped}},
      {"failed",    {kStopped}},
      {"stopped",   {}},
  }};
  // clang-format on
  return kRows.at(static_cast<std::size_t>(phase));
}

}  // namespace

Trainer::Trainer(TrainerOptions options, TrainerEnvironment environment, Owner& owner)
    : options_(std::move(options)),
      env_(environment),
      owner_(owner),
      neighbours_(env_.transport, options_.self),
      courier_(*this, neighbours_, {.ahead = StageId(0), .lease = options_.config.lease()},
               make_policy(options_.config.pipeline.routing, options_.self)),
      order_(env_.samples.order(options_.config.run.seed)),
      in_flight_(flight_limits(options_.config)),
      follower_(std::max<std::uint64_t>(1, options_.config.pipeline.replicas), options_.config.pipeline.stages),
      commits_(commit_items_max(options_.config.pipeline.stages)),
      steps_(options_.config),
      lines_(options_.config),
      held_back_(options_.config.sync.inner_batch + options_.config.targets_per_microbatch(),
                 options_.config.membership()),
      evaluator_({env_.loop, env_.events, env_.samples, options_.config, options_.self, options_.trainer_id, courier_,
                  lifetime_, [this](std::uint64_t samples, std::uint64_t of) { owner_.on_validated(samples, of); }}) {}

Trainer::~Trainer() {
  if (!is(TrainerPhase::kStopped)) stop();
}

// ---- phases ----

void Trainer::go(TrainerPhase to) { move_phase(phase_, to, row_of); }

void Trainer::start() {
  if (!is(TrainerPhase::kWaiting)) return;
  go(TrainerPhase::kFeeding);
  take_up();
  issue();
}

void Trainer::end_feeding(TrainerPhase how, std::function<void()> settled) {
  if (how == TrainerPhase::kLeaving)
    for (auto it = frames_.begin(); it != frames_.end();) {
      const bool stays = deciding_.contains(it->first);
      if (!stays) courier_.close(it->first);
      it = stays ? std::next(it) : frames_.erase(it);
    }
  if (is(TrainerPhase::kFailed)) return;  // on_log_failure was said
  evaluator_.stop_estimate();
  settled_ = std::move(settled);
  const bool taken_up = !is(TrainerPhase::kWaiting);
  go(how);
  if (!taken_up) take_up();  // a resumed life may end before every stage had a peer
  check_settled();
}

void Trainer::check_settled() {
  if (!settled_ || !deciding_.empty()) return;
  if (is(TrainerPhase::kSettling) && env_.book.open() > 0) return;
  // A step that the end cut short is a step of those microbatches that it has.
  if (!is(TrainerPhase::kGivingUp))
    for (const StepId step : steps_.cut_short()) announce(step);
  flush_commits();
  env_.loop.post(lifetime_.guard(std::exchange(settled_, nullptr)));
}

void Trainer::stop() {
  go(TrainerPhase::kStopped);
  lifetime_.end();
  env_.loop.cancel(tick_timer_);
}

// What an earlier life decided is told all the same.
void Trainer::take_up() {
  lines_.begin(env_.book.committed(), env_.book.committed_targets(), env_.loop.now());
  // An earlier life may have died between the durable record and its event line: said again, identical lines are one.
  for (std::uint64_t serial = env_.book.low(); serial < env_.book.next_serial(); ++serial) {
    const MicrobatchId id{options_.trainer_id, serial};
    if (const CommitBook::Logged* logged = env_.book.find(id))
      write(commit_event(id, logged->path, logged->loss_sum / static_cast<double>(logged->targets), logged->targets));
  }
  commits_.add(env_.book.outstanding());
  tick_timer_ = env_.loop.after(kTick, lifetime_.guard([this] { tick(); }));
}

// ---- feeding and deciding ----

bool Trainer::reached_end() const {
  const std::uint64_t end = options_.config.end_targets();
  return end > 0 && env_.book.committed_targets() >= end;
}

bool Trainer::may_issue(std::uint64_t serial) const {
  const std::uint64_t end = options_.config.end_targets();
  if (end > 0 && serial * options_.config.targets_per_microbatch() >= end) return false;
  return env_.book.open() + deciding_.size() < follower_.in_flight() && steps_.may_issue(serial);
}

void Trainer::follow_flight(const MicrobatchId& microbatch) {
  const std::uint64_t before = follower_.in_flight(), open = env_.book.open() + deciding_.size();
  if (!follower_.decided(env_.loop.now() - frames_.at(microbatch).issued, open >= before)) return;
  const std::uint64_t now = follower_.in_flight();
  if (const auto times = said_.due(now > before ? "flight up" : "flight down", env_.loop.now()))
    log_info(now, " microbatches are kept in flight now, ", before,
             " before: ", now > before ? "the lines had room for more" : "the last ones only waited",
             LogThrottle::text_of(*times));
}

void Trainer::issue() {
  if (!is(TrainerPhase::kFeeding)) return;
  const std::uint64_t committed = env_.book.committed_targets();
  follower_.bound(in_flight_.at(committed), in_flight_.most_at(committed));
  while (true) {
    const auto id = env_.book.next();
    if (!id || !may_issue(id->serial)) return;
    if (steps_.is_flush_due()) {
      if (env_.book.open() + deciding_.size() > 0) return;
      flush_commits();  // ahead of the next one's forward on the same line, and of those below it, which come hops
                        // later
      steps_.flushed();
    }
    steps_.issued(id->serial);
    const SampleOrder::Item item = order_.at(id->serial);
    auto frame = codec_for(CodecId::kRaw).encode(env_.samples.tokens(item.sample).view(), TensorRole::kTokens);
    SHOAL_CHECK(frame.ok());
    env_.book.issued(*id);
    write({.event = EventKind::kIssue,
           .microbatch = *id,
           .step = steps_.step_of(id->serial),
           .sample = item.sample,
           .epoch = item.epoch});
    HopSpec spec;
    spec.microbatch = *id;
    spec.sample = item.sample;
    spec.epoch = item.epoch;
    spec.step = steps_.step_of(id->serial);
    spec.to = StageId(0);
    spec.above = {options_.self};
    spec.frame_bytes = frame->size();
    if (const auto took = took_.find(item.sample); took != took_.end()) spec.base = {{took->second}, frame->size()};
    frames_[*id] = {*std::move(frame), env_.loop.now()};
    courier_.open(std::move(spec), env_.loop.now());
  }
}

// Only members take part: a stranger may not end claims, answer for entries or ask what is decided.
void Trainer::on_hop_message(const Remote& from, const Message& message) {
  if (!is(TrainerPhase::kStopped) && neighbours_.admits(from)) courier_.on_message(from, message, 0, env_.loop.now());
}

void Trainer::on_waiting(const Remote& from, const Waiting& message) {
  if (is(TrainerPhase::kStopped) || !neighbours_.admits(from)) return;
  if (const auto stage = neighbours_.roster().stage_of(from.session))
    if (auto decided = env_.book.ask(message.microbatch, *stage, from.session))
      commits_.add({{from.session, {*std::move(decided)}}});
}

void Trainer::on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes>) {
  const bool evaluated = evaluator_.has(microbatch);
  if (!evaluated && (!decides() || !env_.book.is_open(microbatch))) return;
  std::string refusal =
      LossBound{options_.config.targets_per_microbatch(), options_.config.model.vocabulary}.refusal(gradient);
  if (!evaluated &&
      (gradient.path.size() != options_.config.pipeline.stages || gradient.tags.size() != gradient.path.size()))
    refusal = "malformed path";
  if (!refusal.empty()) return courier_.reject(microbatch, refusal, env_.loop.now());
  if (evaluated) return evaluator_.on_won(microbatch, gradient);
  if (const auto bad = forged_in(microbatch, gradient)) return refuse_forged(microbatch, gradient, *bad);
  if (env_.book.names_any(gradient.path)) return refuse_repeated(microbatch, gradient);
  blames_.whole(gradient.path, neighbours_.roster());
  decide(microbatch, gradient);
}

std::optional<std::size_t> Trainer::forged_in(const MicrobatchId& microbatch, const Gradient& gradient) const {
  for (std::size_t k = 0; k < gradient.path.size(); ++k) {
    const auto stage = neighbours_.roster().stage_of(gradient.path[k].session);
    if (options_.tag_of(gradient.path[k], microbatch) != gradient.tags[k].value || (stage && stage->value != k))
      return k;
  }
  return std::nullopt;
}

// Its session alone can have given the tag of one microbatch to the entry of another.
void Trainer::refuse_repeated(const MicrobatchId& microbatch, const Gradient& gradient) {
  const TimePoint now = env_.loop.now();
  courier_.reject(microbatch, "an entry of another microbatch in its path", now, Courier::Fault::kUnknown);
  for (const EntryName& element : gradient.path)
    if (env_.book.names_any({element}) && !neighbours_.is_last(element.session, now))
      owner_.on_misconduct(element.session, "it named an entry of one microbatch in the path of another");
}

// Only of stage 0 the sender is known to be at fault: what stands further down it may have handed on as it came.
void Trainer::refuse_forged(const MicrobatchId& microbatch, const Gradient& gradient, std::size_t bad) {
  const TimePoint now = env_.loop.now();
  courier_.reject(microbatch, "its path has an entry that the session it names did not make", now,
                  bad == 0 ? Courier::Fault::kSenders : Courier::Fault::kUnknown);
  const auto culprit = blames_.forged(gradient.path, bad, neighbours_.roster(),
                                      [&](const Session& session) { return !neighbours_.is_last(session, now); });
  if (culprit) owner_.on_misconduct(*culprit, "paths that it handed on had entries that their sessions did not make");
}

void Trainer::decide(const MicrobatchId& microbatch, const Gradient& gradient) {
  follow_flight(microbatch);
  env_.log.append(env_.book.log(microbatch, gradient));
  deciding_[microbatch] = gradient;
  SHOAL_FAULT("trainer.logged");
  sync_log([this, microbatch] { on_durable(microbatch); });
}

// A log that failed once takes nothing more, and whoever needs it next may come minutes later: each sync says so.
void Trainer::sync_log(std::function<void()> durable) {
  env_.log.sync(lifetime_.guard([this, durable = std::move(durable)](const Status& status) {
    if (is(TrainerPhase::kFailed)) return;
    if (status.ok()) return durable();
    go(TrainerPhase::kFailed);
    owner_.on_log_failure(status.error());
  }));
}

void Trainer::on_durable(const MicrobatchId& microbatch) {
  const auto it = deciding_.find(microbatch);
  if (it == deciding_.end()) return;
  const Gradient gradient = std::move(it->second);
  deciding_.erase(it);
  for (const CommitBook::Listing& listing : env_.book.durable(microbatch)) say_lost(listing);
  write(commit_event(microbatch, gradient.path, gradient.loss_sum / static_cast<double>(gradient.targets),
                     gradient.targets));
  commits_.add(env_.book.commits_for(microbatch));
  commits_.add(env_.book.answers(microbatch));
  courier_.commit(microbatch);
  frames_.erase(microbatch);
  count(microbatch, gradient);
  check_settled();
  issue();
}

void Trainer::flush_commits() {
  Commit frame;
  frame.lows = {{options_.trainer_id, env_.book.low()}};
  frame.run_targets = env_.book.committed_targets();
  commits_.flush(frame, [this](const Session& to, Commit message) { neighbours_.send(to, std::move(message)); });
}

void Trainer::tick() {
  tick_timer_ = env_.loop.after(kTick, lifetime_.guard([this] { tick(); }));
  env_.loop.name_callback("trainer tick");
  const TimePoint now = env_.loop.now();
  flush_commits();
  courier_.tick(now, {{options_.trainer_id, env_.book.low()}, evaluator_.low()});
  if (now >= next_repeat_) {
    next_repeat_ = now + options_.config.lease() / 4;
    commits_.add(env_.book.outstanding());
    look_for_full();
    if (env_.book.done().dirty()) {  // lazily: what is lost of it is found again after a restart
      env_.log.append(env_.book.done_record());
      sync_log([this] { env_.book.done_durable(); });
    }
  }
  issue();
}

void Trainer::on_link_up(const Remote& remote) {
  courier_.on_link_up(remote, env_.loop.now());
  if (!neighbours_.roster().stage_of(remote.session)) return;
  // What was decided while it had no link, before a last round or the end of the run goes on without its answer.
  const CommitQueue::Commits outstanding = env_.book.outstanding();
  if (const auto found = outstanding.find(remote.session); found != outstanding.end()) commits_.add({*found});
}

void Trainer::on_link_down(const Remote& remote) { courier_.on_link_down(remote, env_.loop.now()); }

void Trainer::on_members(const MemberList& list) {
  const Roster::Change change = courier_.on_members(list, env_.loop.now());
  if (!change.added.empty() || !change.over.empty()) follower_.forget();
  issue();
}

// ---- what follows from what is decided ----

void Trainer::count(const MicrobatchId& microbatch, const Gradient& gradient) {
  if (auto line = lines_.count(gradient, env_.book.committed_targets(), env_.loop.now())) {
    for (std::uint16_t k = 0; k < options_.config.pipeline.stages; ++k)
      line->peers.push_back(static_cast<std::uint32_t>(neighbours_.roster().serving(StageId(k)).size()));
    line->validation = evaluator_.last_estimate();
    const StepId step(line->step);
    write({.event = EventKind::kTrain, .step = step, .loss = line->loss, .targets = line->tokens});
    owner_.on_train_line(*line);
    if (is(TrainerPhase::kFeeding) && options_.config.validates_after(line->step)) evaluator_.estimate(step);
  }
  steps_.logged(microbatch.serial);
  announce_whole();
}

void Trainer::announce_whole() {
  while (const auto step = steps_.next_whole()) announce(*step);
}

void Trainer::announce(StepId step) {
  Step message;
  message.step = step;
  message.run_targets = env_.book.committed_targets();
  message.winners = env_.book.paths(steps_.microbatches(step, options_.trainer_id));
  for (const CommitItem& item : message.winners) message.targets += env_.book.find(item.microbatch)->targets;
  steps_.announced(step);
  if (!message.winners.empty()) owner_.on_step(message);
}

void Trainer::announce_steps() {
  steps_.resume(env_.book, options_.trainer_id);
  announce_whole();
}

// ---- HopOwner ----

std::vector<Bytes> Trainer::frames_of(const Session&, const Forward& message, bool) {
  if (evaluator_.has(message.microbatch)) return {evaluator_.frame_of(message.microbatch)};
  const auto frame = frames_.find(message.microbatch);
  SHOAL_CHECK(frame != frames_.end());
  return {frame->second.frame};
}

// Tokens have no bases, but the peers after them keep some of this sample: it takes the same way again.
void Trainer::on_branch(const MicrobatchId& microbatch, const Session& to, const Lease&, BranchEnd end) {
  if (options_.config.keeps_bases() && end == BranchEnd::kSettled)
    took_[courier_.hops().find(microbatch)->spec.sample] = to;
}

void Trainer::on_parked(const MicrobatchId&, StageId stage, bool parked) { owner_.on_parked(stage, parked); }

}  // namespace shoal
