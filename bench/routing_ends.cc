#include "bench/routing_ends.h"

#include <algorithm>
#include <cmath>

namespace shoal {

namespace {

constexpr Duration kTick = 50ms, kBeat = 250ms;  // those of a stage peer
constexpr Duration kLease = 4s;
constexpr std::size_t kCredits = 16;
constexpr std::uint64_t kInnerBatch = 16;
constexpr double kForwardPart = 1.0 / 3;

LedgerOptions ledger_options(const Session& self) {
  LedgerOptions options;
  options.self = self;
  options.stage = StageId(kPeersStage);
  options.lease = kLease;
  return options;
}

}  // namespace

// ---- sender ----

RoutingSender::RoutingSender(const RoutingStage& stage, std::size_t place, const Session& self, std::size_t in_flight,
                             std::unique_ptr<RoutingPolicy> policy, std::function<void(const RoutingWin&)> won)
    : stage_(stage),
      place_(place),
      in_flight_(in_flight),
      self_(self),
      won_(std::move(won)),
      links_(stage.net),
      neighbours_(links_, self),
      courier_(*this, neighbours_, {StageId(kPeersStage), kLease}, std::move(policy)) {
  links_.set_index(stage_.net.add(*this, self, place));
}

void RoutingSender::on_members(const MemberList& list) {
  courier_.on_members(list, stage_.loop.now());
  issue();
}

void RoutingSender::start(Duration first_tick) {
  started_ = true;
  stage_.loop.after(first_tick, [this] { tick(); });
  issue();
}

std::set<MicrobatchId> RoutingSender::open() const {
  std::set<MicrobatchId> ids;
  for (const auto& [serial, issued] : open_) ids.insert({self_.peer_tag, serial});
  return ids;
}

void RoutingSender::issue() {
  if (issuing_ || !started_) return;
  issuing_ = true;
  while (open_.size() < in_flight_) {
    const MicrobatchId id{self_.peer_tag, next_++};
    Issued& issued = open_[id.serial];
    issued.at = stage_.loop.now();
    issued.sample = SampleId(mix64(self_.peer_tag, id.serial % stage_.world.samples));
    HopSpec spec;
    spec.microbatch = id;
    spec.sample = issued.sample;
    spec.to = StageId(kPeersStage);
    spec.above = {self_};
    spec.frame_bytes = stage_.world.frame_bytes;
    if (const auto base = bases_.find(issued.sample.value); base != bases_.end()) {
      issued.base = base->second;
      spec.base = {{base->second}, stage_.world.frame_bytes / 4};
    }
    courier_.open(std::move(spec), stage_.loop.now());
  }
  issuing_ = false;
}

std::vector<Bytes> RoutingSender::frames_of(const Session& to, const Forward& message, bool key) {
  const auto issued = open_.find(message.microbatch.serial);
  const bool delta = !key && issued != open_.end() && issued->second.base == to;
  return {frame_of(delta ? stage_.world.frame_bytes / 4 : stage_.world.frame_bytes)};
}

void RoutingSender::on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes>) {
  const auto at = open_.find(microbatch.serial);
  if (at == open_.end() || gradient.path.empty()) return;
  const Issued issued = at->second;
  open_.erase(at);
  const EntryName& winner = gradient.path.front();
  bases_[issued.sample.value] = winner.session;
  std::optional<bool> hit;
  if (issued.base) hit = *issued.base == winner.session;
  won_({place_, winner.session, winner.serial, stage_.loop.now() - issued.at, hit});
  courier_.commit(microbatch);
  stage_.loop.post([this] { issue(); });
}

void RoutingSender::on_message(const Remote& from, Message& message, TransferId transfer) {
  if (!neighbours_.admits(from)) return;
  (void)courier_.on_message(from, message, transfer, stage_.loop.now());
}

void RoutingSender::on_frames(const Remote& from, TransferId transfer, bool whole) {
  Result<std::vector<Bytes>> frames = std::vector<Bytes>{};
  if (!whole) frames = make_error(ErrorCode::kUnreachable, "dropped by the sender");
  (void)courier_.on_frames(from, transfer, frames, stage_.loop.now());
}

void RoutingSender::tick() {
  stage_.loop.after(kTick, [this] { tick(); });
  courier_.tick(stage_.loop.now(), {{self_.peer_tag, open_.empty() ? next_ : open_.begin()->first}});
}

// ---- peer ----

RoutingPeer::RoutingPeer(const RoutingStage& stage, std::size_t place, const Session& self, Rng rng)
    : stage_(stage),
      place_(place),
      self_(self),
      shape_(stage.world.peers[place]),
      rng_(rng),
      links_(stage.net),
      neighbours_(links_, self),
      courier_(*this, neighbours_, {std::nullopt, kLease}),
      windows_({.inner_batch = kInnerBatch}),
      credits_(kCredits, 4),
      ledger_(*this, courier_, windows_, credits_, ledger_options(self)),
      index_(stage_.net.add(*this, self, stage.world.senders + place)) {
  links_.set_index(index_);
}

void RoutingPeer::on_members(const MemberList& list) {
  for (const Session& session : courier_.on_members(list, stage_.loop.now()).over) ledger_.on_session_over(session);
  pump();
}

void RoutingPeer::start(Duration first_tick) {
  stage_.loop.after(first_tick, [this] { tick(); });
}

void RoutingPeer::strike() {
  struck_ = true;
  if (shape_.mutes) stage_.net.mute(index_);
}

void RoutingPeer::end() {
  over_ = true;
  stage_.net.kill(index_);
}

Duration RoutingPeer::worked_on(EntrySerial serial) const {
  const auto at = entries_.find(serial);
  return at == entries_.end() ? Duration{0} : at->second.time;
}

Duration RoutingPeer::worked_on(const std::set<MicrobatchId>& microbatches) const {
  Duration all{0};
  for (const auto& [serial, worked] : entries_)
    if (microbatches.contains(worked.microbatch)) all += worked.time;
  return all;
}

void RoutingPeer::on_message(const Remote& from, Message& message, TransferId transfer) {
  const TimePoint now = stage_.loop.now();
  if (courier_.on_message(from, message, transfer, now)) {
  } else if (auto* forward = std::get_if<Forward>(&message)) {
    if (const auto serial = ledger_.on_forward(from.session, *forward, transfer, now)) {
      inputs_[transfer] = *serial;
      entries_[*serial].microbatch = forward->microbatch;
    }
  } else if (auto* take = std::get_if<Take>(&message)) {
    ledger_.on_take(from.session, *take, now);
  } else if (auto* release = std::get_if<Release>(&message)) {
    ledger_.on_release(from.session, *release);
  } else if (auto* renew = std::get_if<Renew>(&message)) {
    ledger_.on_lows(renew->lows);
    ledger_.on_renew(from.session, *renew, now);
  } else if (auto* commit = std::get_if<Commit>(&message)) {
    ledger_.on_commit(from.session, *commit);  // each sender is the trainer of what it issues
  }
  pump();
}

void RoutingPeer::on_frames(const Remote&, TransferId transfer, bool whole) {
  const auto at = inputs_.find(transfer);
  if (at == inputs_.end()) return;
  const EntrySerial serial = at->second;
  inputs_.erase(at);
  if (whole)
    ledger_.inputs_arrived(serial, stage_.loop.now());
  else
    ledger_.inputs_lost(serial, BusyReason::kFailed);
  pump();
}

void RoutingPeer::send(const Session& to, Message message) {
  if (auto* busy = std::get_if<Busy>(&message)) busy->queue_ms = queue_word();
  neighbours_.send(to, std::move(message));
}

bool RoutingPeer::send_gradient(const Session& to, Gradient message, EntrySerial) {
  const double computed = 1.0 * message.forward_us + message.backward_us;
  const double line = 1e6 * neighbours_.line_seconds(to, stage_.world.frame_bytes);
  const double slower = computed > 0 ? std::max(1.0, line / computed) : 1;  // as EntryDesk says it
  const auto said = [&](std::uint32_t us) { return static_cast<std::uint32_t>(us * slower * shape_.claims); };
  message.forward_us = said(message.forward_us);
  message.backward_us = said(message.backward_us);
  return neighbours_.send_to(to, std::move(message), {frame_of(stage_.world.frame_bytes)}).ok();
}

void RoutingPeer::refuse_frames(const Session& from, TransferId transfer) {
  inputs_.erase(transfer);
  links_.refuse(routing_peer_id(from), transfer);
}

// ---- device ----

Duration RoutingPeer::duration_of(const Job& job) {
  const bool forward = job.kind == JobKind::kForward, backward = job.kind == JobKind::kBackward;
  if (!forward && !backward && job.kind != JobKind::kUndo) return 0ms;
  Worked& worked = entries_[job.serial];
  if (forward && shape_.tail > 0) worked.factor = std::exp(shape_.tail * (rng_.normal() - shape_.tail / 2));
  const double part = forward ? kForwardPart : 1 - kForwardPart;
  return from_seconds(seconds_of(shape_.compute) * part * worked.factor * (struck_ ? shape_.slower : 1));
}

void RoutingPeer::pump() {
  if (busy_ || over_ || (struck_ && shape_.hangs)) return;
  const auto job = ledger_.next_job(false);
  if (!job) return;
  busy_ = true;
  job_began_ = stage_.loop.now();
  const Duration took = duration_of(*job);
  stage_.loop.after(took, [this, job = *job, took] {
    if (over_ || (struck_ && shape_.hangs)) return;  // it stays busy
    busy_ = false;
    worked_ += took;
    job_done(job, took);
    pump();
  });
}

void RoutingPeer::job_done(const Job& job, Duration took) {
  const auto us = static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  if (const auto at = entries_.find(job.serial); at != entries_.end()) at->second.time += took;
  switch (job.kind) {
    case JobKind::kForward:
    case JobKind::kEvaluate: {
      ForwardResult result;
      result.ok = true;
      result.targets = 1;
      result.took_us = us;
      return ledger_.forward_done(job.serial, result, stage_.loop.now());
    }
    case JobKind::kBackward:
      return ledger_.backward_done(job.serial, true, windows_.steps_made(), false, us);
    case JobKind::kUndo:
      return ledger_.undo_done(job.serial, true);
    case JobKind::kInnerStep:
      windows_.note_step(job.slot, windows_.steps_made() + 1);
      return ledger_.secure(windows_.stepped());  // as if a round followed at once
    case JobKind::kApplyShift:
    case JobKind::kRelease:
      return;
  }
}

// ---- words ----

std::uint32_t RoutingPeer::queue_word() {
  const TimePoint now = stage_.loop.now();
  if (now >= word_until_) {
    word_ = static_cast<std::uint32_t>(ledger_.queue_ms() * shape_.claims);
    if (const Duration age = stage_.world.words_age; age > Duration{0})
      word_until_ = TimePoint((now.time_since_epoch() / age + 1) * age);
  }
  return word_;
}

void RoutingPeer::tell_progress(bool beat) {
  std::map<Lease, HopPhase> told;
  for (auto& [holder, items] : ledger_.progress()) {
    Progress message;
    message.queue_ms = queue_word();
    message.job_ms = busy_ ? std::max<std::uint32_t>(
                                 1, static_cast<std::uint32_t>(seconds_of(stage_.loop.now() - job_began_) * 1000))
                           : 0;
    for (const ProgressItem& item : items) {
      const auto known = told_.find(item.lease);
      if (beat || known == told_.end() || known->second != item.phase) message.items.push_back(item);
      told[item.lease] = item.phase;
    }
    if (!message.items.empty()) neighbours_.send(holder, std::move(message));
  }
  told_ = std::move(told);
}

void RoutingPeer::tick() {
  if (over_) return;
  stage_.loop.after(kTick, [this] { tick(); });
  const TimePoint now = stage_.loop.now();
  windows_.note_time(now);
  const bool beat = now >= next_beat_;
  if (beat) next_beat_ = now + kBeat;
  ledger_.tick(now);
  courier_.tick(now);
  tell_progress(beat);
  pump();
}

}  // namespace shoal
