#include "runtime/stage_peer/round_desk.h"

#include <algorithm>

#include "common/fault.h"
#include "common/log.h"
#include "runtime/config/outer_rules.h"

namespace shoal {

RoundDesk::RoundDesk(const StageSession& session, Neighbours& neighbours, Ledger& ledger, Windows& windows,
                     DeviceScheduler& device, ArenaState& arena, WindowJobs& writes)
    : session_(session),
      neighbours_(neighbours),
      ledger_(ledger),
      windows_(windows),
      device_(device),
      arena_(arena),
      writes_(writes),
      rules_(outer_rules_of(*session.config)),
      catch_up_(session, ledger, device, arena, rules_),
      round_(*this, session.loop, session.self, session.spec.stage) {}

void RoundDesk::on_open(const Remote& from, const RoundOpen& message) {
  if (is_authority(from)) round_.on_open(message);
}

// Before the stage serves, its state is still on its way here. It may be an older one than this: the authority says it
// again.
void RoundDesk::on_commit(const Remote& from, const RoundCommit& message) {
  if (is_authority(from) && arena_.serving) round_.on_commit(message);
}

void RoundDesk::on_abandon(const Remote& from, const RoundAbandon& message) {
  if (is_authority(from)) round_.on_abandon(message);
}

void RoundDesk::on_part(const Remote& from, const RoundPart& message, TransferId transfer) {
  if (transfer == 0)
    round_.on_part(from.session, message, {});
  else
    parts_on_the_way_[{from.peer, transfer}] = message;
}

void RoundDesk::on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames) {
  const auto it = parts_on_the_way_.find({from.peer, transfer});
  if (it == parts_on_the_way_.end()) return;
  const RoundPart part = it->second;
  parts_on_the_way_.erase(it);
  if (frames.ok() && frames->size() == 1) round_.on_part(from.session, part, frames->front());
}

void RoundDesk::forget_link(const PeerId& peer) {
  std::erase_if(parts_on_the_way_, [&](const auto& item) { return item.first.peer == peer; });
}

bool RoundDesk::catch_up(Bytes image) {
  if (round_.active() || !catch_up_.take(std::move(image))) return false;
  device_.pump();
  return true;
}

const OuterRule* RoundDesk::rule(std::uint8_t rule_id) const { return rules_.of(static_cast<RuleId>(rule_id)).get(); }

// What was prepared may be committed after the session: its candidates stay in the arena (kept_state.h).
void RoundDesk::cancel() {
  const auto prepared = arena_.prepared;
  round_.cancel();
  arena_.prepared = prepared;
}

RoundContext RoundDesk::context_of(const RoundOpen& open) const {
  RoundContext context;
  context.round = open.round;
  context.base = open.base;
  context.fragment = open.fragment;
  const Windows::Window* window = open.step.value > 0 ? windows_.step_window(open.step) : nullptr;
  if (window != nullptr) {
    context.window = window->slot;
    context.weight = window->targets();
  }
  return context;
}

void RoundDesk::contribute(const RoundOpen& open, std::function<void(Result<Contribution>)> done) {
  every_step_ = rule_of(open)->every_step();
  windows_.note_run(open.run_targets);
  step_ = ToContribute{open, std::move(done)};
  if (open.last) windows_.flush();
  session_.events.write(
      {.event = EventKind::kRoundEnter, .round = open.round, .version = open.base, .step = open.step});
  device_.pump();
}

void RoundDesk::prepare(const RoundOpen& open, Payload reduced, std::function<void(Result<Digest>)> done) {
  RoundContext context = context_of(open);
  const RunConfig& config = *session_.config;
  context.inner = config.inner_step(open.step.value, std::max<std::uint64_t>(1, reduced.weight), open.run_targets,
                                    config.gradients_late());
  auto digest = std::make_shared<Result<Digest>>(Digest{});
  run_beside(
      open,
      [r = rule_of(open), context, reduced = std::make_shared<Payload>(std::move(reduced)),
       digest](StageExecutor& executor) { *digest = r->prepare(executor, context, std::move(*reduced)); },
      [this, open, digest, done = std::move(done)] {
        if (digest->ok()) arena_.prepared = open;
        done(*digest);
      });
}

void RoundDesk::run_beside(const RoundOpen& open, std::function<void(StageExecutor&)> job, std::function<void()> done) {
  ++beside_;
  session_.aside.run(
      WorkKind::kAside, [job = std::move(job), executor = session_.executor] { job(*executor); },
      lifetime_.guard([this, round = open.round, done = std::move(done)] {
        --beside_;
        if (round_.current() == round) done();
        device_.pump();
      }));
}

void RoundDesk::commit(const RoundOpen& open, const RoundCommit& commit, std::function<void()> done) {
  SHOAL_FAULT("round.before_commit");
  step_ = ToCommit{open, commit, std::move(done)};
  device_.pump();
}

void RoundDesk::abandon(const RoundOpen& open) {
  step_ = std::monostate{};
  arena_.prepared.reset();
  abandoned_ = open;
  session_.events.write({.event = EventKind::kRoundDrop, .round = open.round});
  device_.pump();
}

RoundHost::Carried RoundDesk::carried(const Session& member) const {
  const auto peer = neighbours_.peer_of(member);
  if (!peer) return {};
  const LinkStats stats = session_.links.stats(*peer);
  return {stats.sent_bytes + stats.received_bytes, stats.bytes_per_second};
}

void RoundDesk::send_to_authority(Message message) {
  if (const auto* report = std::get_if<RoundReport>(&message); report != nullptr && !report->entries.empty()) {
    session_.events.write({.event = EventKind::kRoundReport,
                           .round = report->round,
                           .tag = report->tag,
                           .secured = std::vector<Secured>{{session_.self, report->entries}}});
  }
  if (const auto sent = session_.links.send(session_.authority, std::move(message)); !sent.ok())
    log_debug("not sent to the authority: ", sent.error().message);
}

void RoundDesk::send_to_member(const Session& member, Message message, std::vector<Bytes> frames) {
  std::uint64_t bytes = 0;
  for (const Bytes& frame : frames) bytes += frame.size();
  if (const auto sent = neighbours_.send_to(member, std::move(message), std::move(frames)); !sent.ok())
    return log_debug("round part not sent: ", sent.error().message);
  sent_bytes_ += bytes;
}

void RoundDesk::fell_behind(const RoundCommit& commit, bool secured, bool differs, const std::string& why) {
  if (arena_.version >= commit.version && !differs) return;
  step_ = std::monostate{};
  catch_up_.missed(commit, secured, differs, why);
}

bool RoundDesk::start_next() {
  if (!arena_.serving || beside_ > 0) return false;
  if (abandoned_ && rule_of(*abandoned_) == nullptr) abandoned_.reset();  // it never began here
  if (abandoned_) {
    run_abandon();
    return true;
  }
  if (catch_up_.ready()) {
    catch_up_.run([this] { round_.on_version_changed(); });
    return true;
  }
  if (std::holds_alternative<ToCommit>(step_)) return run_commit();
  return std::holds_alternative<ToContribute>(step_) && run_contribute();
}

void RoundDesk::run_abandon() {
  const RoundOpen open = *std::exchange(abandoned_, std::nullopt);
  device_.run(
      WorkKind::kAbandon,
      [r = rule_of(open), context = context_of(open)](StageExecutor& executor) { r->abandon(executor, context); },
      [] {});
}

Version RoundDesk::anchor_for_next_job() const {
  if (committing_) return *committing_;
  const auto* const next = std::get_if<ToCommit>(&step_);
  return next != nullptr && may_commit(*next) ? next->commit.version : arena_.version;
}

bool RoundDesk::may_commit(const ToCommit& commit) const {
  return !rule_of(commit.open)->every_step() || windows_.unsettled_at_other() == 0;
}

bool RoundDesk::run_commit() {
  if (!may_commit(std::get<ToCommit>(step_))) return false;
  auto commit = std::make_shared<ToCommit>(std::get<ToCommit>(std::exchange(step_, std::monostate{})));
  const auto r = rule_of(commit->open);
  committing_ = commit->commit.version;
  struct Outcome {
    WeightStamp stamp = 0;
    bool shift_pending = false;
    CountTag tag = 0;
  };
  auto outcome = std::make_shared<Outcome>();
  device_.run(
      WorkKind::kCommit,
      [r, context = context_of(commit->open), outcome](StageExecutor& executor) {
        r->commit(executor, context);
        outcome->stamp = executor.stamp();
        outcome->shift_pending = executor.shift_pending();
        outcome->tag = executor.arena().tag(ArenaRole::kAnchor);
      },
      [this, commit, outcome, r] {
        committing_.reset();
        EventRecord anchor =
            anchor_event(session_.spec.stage, commit->commit.version, outcome->tag, commit->commit.digest);
        if (r->every_step()) writes_.note_step(commit->open.step, anchor);  // while the ledger knows the entries
        windows_.wrote(outcome->stamp);
        arena_.shift_pending = outcome->shift_pending;
        arena_.version = commit->commit.version;
        arena_.prepared.reset();
        arena_.rule = r->id();
        for (const Secured& secured : commit->commit.secured)
          if (secured.session == session_.self) ledger_.secure(secured.serials);
        windows_.note_round();
        if (r->every_step()) {
          arena_.step_done = commit->open.step;
          arena_.adam_step = commit->open.step.value;
          windows_.pop_step(commit->open.step);
        }
        session_.events.write(anchor);
        session_.owner.on_version(arena_.version);
        commit->done();
      });
  return true;
}

bool RoundDesk::run_contribute() {
  const RoundOpen open = std::get<ToContribute>(step_).open;
  const auto r = rule_of(open);
  if (r->every_step()) {
    if (!ledger_.step_ready(open.step)) return false;
  } else {
    if (open.last || ledger_.leaving()) {
      windows_.flush();
      if (!windows_.empty()) return false;
    }
  }
  auto contribute = std::make_shared<ToContribute>(std::get<ToContribute>(std::exchange(step_, std::monostate{})));
  RoundContext context = context_of(open);
  auto result = std::make_shared<Contribution>();
  if (r->every_step()) {
    if (const Windows::Window* window = windows_.step_window(contribute->open.step)) {
      for (const auto& [serial, entry] : window->entries) result->entries.push_back(serial);
    }
  } else {
    result->entries = windows_.stepped();
    context.weight = windows_.stepped_targets();
  }
  auto payload = std::make_shared<Result<Payload>>(Payload{});
  const auto contributed = [contribute, result, payload] {
    SHOAL_FAULT("round.contributed");
    if (!payload->ok()) return contribute->done(payload->error());
    result->payload = **std::move(payload);
    contribute->done(std::move(*result));
  };
  auto taken = std::make_shared<Status>();
  device_.run(
      WorkKind::kSnapshot,
      [r, context, taken](StageExecutor& executor) { *taken = r->take_snapshot(executor, context); },
      [this, open, r, context, contribute, payload, taken, contributed] {
        if (round_.current() != open.round) return;
        if (!taken->ok()) return contribute->done(taken->error());
        run_beside(
            open, [r, context, payload](StageExecutor& executor) { *payload = r->contribute(executor, context); },
            contributed);
      });
  return true;
}

}  // namespace shoal
