// What the device does for the ledger, what rounds secure, and what others ask.
#include <algorithm>

#include "common/check.h"
#include "router/ledger.h"

namespace shoal {
namespace {

// The running mean of what a job takes.
double recent(double mean, std::uint32_t took_us) { return mean + (mean == 0 ? 1.0 : 0.1) * (took_us - mean); }

// With the entry itself.
void begin_path(Entry& e, const LedgerOptions& options) {
  e.path.assign(1, e.name);
  e.tags.assign(1, PathTag(options.tag_of ? options.tag_of(e.microbatch, e.name.serial) : 0));
}

HopSpec hop_of(const Entry& e, const ForwardResult& result, const LedgerOptions& options) {
  HopSpec spec;
  spec.microbatch = e.microbatch;
  spec.sample = e.sample;
  spec.epoch = e.epoch;
  spec.kind = e.kind;
  spec.versions = e.versions;
  spec.step = e.step;
  spec.to = *options.next;
  spec.above = e.above;
  spec.above.push_back(options.self);
  spec.frame_bytes = result.frame_bytes;
  spec.base = result.base;
  spec.hint = e.hint;
  return spec;
}

HopPhase phase_of(const Entry& e, const Courier& courier, const Windows& windows) {
  switch (e.state) {
    case EntryState::kArriving:
    case EntryState::kReady:
    case EntryState::kForward:
      return HopPhase::kForward;
    case EntryState::kBelow:
      return courier.hops().stranded(e.microbatch) ? HopPhase::kStranded : HopPhase::kBelow;
    // A backward that waits for a window waits for commits, not for the device: no deadline runs.
    case EntryState::kQueued:
      return windows.has_room(e.step) ? HopPhase::kBackward : HopPhase::kBelow;
    default:
      return HopPhase::kBackward;
  }
}

// The device works on it or could start it now. A backward without room in a window waits for COMMITs, a forward that
// is too early for a round: not for the device.
bool is_queued(const Entry& e, const Windows& windows) {
  if (e.state == EntryState::kReady) return !windows.too_early(e.step);
  if (e.state == EntryState::kQueued) return windows.has_room(e.step);
  return is_on_device(e.state);
}

}  // namespace

void Ledger::inputs_arrived(EntrySerial serial, TimePoint now) {
  Entry* e = entries_.find(serial);
  if (e == nullptr || e->state != EntryState::kArriving) return;
  arrivals_.whole(serial, now);
  move(*e, EntryState::kReady);
}

void Ledger::inputs_lost(EntrySerial serial, BusyReason why) {
  Entry* e = entries_.find(serial);
  if (e == nullptr || e->state != EntryState::kArriving) return;
  arrivals_.forget(serial);
  fail(*e, why, "input lost");
}

bool Ledger::base_missing(EntrySerial serial) {
  Entry* e = entries_.find(serial);
  SHOAL_CHECK(e != nullptr && is_on_device(e->state));
  if (e->state == EntryState::kEnding || e->key_lease || !ask_key_frame(*e)) return false;
  move(*e, EntryState::kArriving);
  return true;
}

// Their sender is asked, while its claim stands; else any other holder that claims the entry.
bool Ledger::ask_key_frame(Entry& e) {
  const auto can = [](const auto& item) { return !item.second.link_lost; };
  auto chosen = std::find_if(e.leases.begin(), e.leases.end(),
                             [&](const auto& item) { return can(item) && item.second.holder == e.transfer_from; });
  if (chosen == e.leases.end()) chosen = std::find_if(e.leases.begin(), e.leases.end(), can);
  if (chosen == e.leases.end()) return false;
  e.key_lease = chosen->first;
  e.transfer_from = chosen->second.holder;
  say(EventKind::kNeedKeyFrame, e);
  port_.send(e.transfer_from, NeedKeyFrame{chosen->first});
  return true;
}

void Ledger::gradient_arrived(const MicrobatchId& microbatch, const Gradient& message) {
  Entry* e = entries_.find_live(microbatch);
  if (e == nullptr || e->state != EntryState::kBelow) return;
  e->loss_sum = message.loss_sum;
  e->targets = message.targets;
  if (e->kind == ForwardKind::kEvaluate) {
    give_gradient_to_all(*e);
    courier_.forget(microbatch);
    port_.discard(e->name.serial);
    return move(*e, EntryState::kGone);
  }
  begin_path(*e, options_);
  e->path.insert(e->path.end(), message.path.begin(), message.path.end());
  e->tags.insert(e->tags.end(), message.tags.begin(), message.tags.end());
  move(*e, EntryState::kQueued);
}

void Ledger::gradient_rejected(EntrySerial serial) {
  Entry* e = entries_.find(serial);
  SHOAL_CHECK(e != nullptr && is_on_device(e->state));
  e->path.clear();
  e->tags.clear();
  windows_.remove(serial);
  if (e->state == EntryState::kEnding) return end(*e, e->doom, true);
  move(*e, EntryState::kBelow);
}

std::optional<Job> Ledger::release_job() {
  if (settle_next_.empty() && drop_next_.empty()) return std::nullopt;
  Job job;
  job.kind = JobKind::kRelease;
  job.settled.swap(settle_next_);
  job.dropped.swap(drop_next_);
  return job;
}

std::optional<Job> Ledger::next_job(bool shift_pending, bool may_step) {
  if (auto job = release_job()) return job;
  for (const EntrySerial serial : entries_.active())
    if (entries_.find(serial)->state == EntryState::kUndoing)
      return Job{.kind = JobKind::kUndo,
                 .serial = serial,
                 .slot = windows_.slot_of(serial).value_or(WindowSlot::kA),
                 .empties = windows_.alone(serial)};
  if (const Windows::Window* window = may_step ? windows_.ready() : nullptr)
    return Job{.kind = JobKind::kInnerStep,
               .slot = window->slot,
               .targets = window->targets(),
               .run_targets = window->run_targets};
  if (shift_pending && windows_.empty()) return Job{.kind = JobKind::kApplyShift};
  for (const EntrySerial serial : entries_.active()) {
    Entry& e = *entries_.find(serial);
    if (e.state != EntryState::kQueued) continue;
    if (windows_.too_late(e.step, e.first_step)) {
      move(e, EntryState::kBackward);
      return Job{.kind = JobKind::kBackward, .serial = serial, .late = true};
    }
    const auto slot = windows_.room(e.step);
    if (!slot) continue;
    windows_.add(*slot, serial, e.targets, e.first_step);  // its place is taken before the device starts
    move(e, EntryState::kBackward);
    return Job{.kind = JobKind::kBackward, .serial = serial, .slot = *slot};
  }
  for (const EntrySerial serial : entries_.active()) {
    Entry& e = *entries_.find(serial);
    if (e.state != EntryState::kReady || windows_.too_early(e.step)) continue;
    move(e, EntryState::kForward);
    return Job{.kind = e.kind == ForwardKind::kEvaluate ? JobKind::kEvaluate : JobKind::kForward, .serial = serial};
  }
  return std::nullopt;
}

void Ledger::forward_done(EntrySerial serial, const ForwardResult& result, TimePoint now) {
  Entry* e = entries_.find(serial);
  SHOAL_CHECK(e != nullptr && is_on_device(e->state));
  e->forward_us = result.took_us;
  e->first_step = windows_.steps_made();
  forward_us_ = recent(forward_us_, result.took_us);
  if (e->state == EntryState::kEnding) return end(*e, e->doom, true);
  if (!result.ok) return fail(*e, BusyReason::kFailed, "forward failed");
  say(EventKind::kForward, *e);
  if (options_.next) {
    move(*e, EntryState::kBelow);
    return courier_.open(hop_of(*e, result, options_), now);
  }
  e->loss_sum = result.loss_sum;
  e->targets = result.targets;
  if (e->kind == ForwardKind::kEvaluate) {
    move(*e, EntryState::kBelow);
    Gradient loss;
    loss.loss_sum = result.loss_sum;
    loss.targets = result.targets;
    return gradient_arrived(e->microbatch, loss);
  }
  begin_path(*e, options_);
  move(*e, EntryState::kQueued);
}

void Ledger::backward_done(EntrySerial serial, bool ok, WeightStamp stamp, bool recomputed, std::uint32_t took_us) {
  Entry* e = entries_.find(serial);
  SHOAL_CHECK(e != nullptr && is_on_device(e->state));
  e->backward_us = took_us;
  backward_us_ = recent(backward_us_, took_us);
  if (!ok) {
    windows_.remove(serial);
    return fail(*e, BusyReason::kFailed, "backward failed");
  }
  const bool late = !windows_.slot_of(serial);
  counters_.recomputed += recomputed;
  counters_.counted += !late;
  e->stamp = stamp;
  windows_.set_stamp(serial, stamp);
  say(late ? EventKind::kLate : EventKind::kCounted, *e);
  if (e->state == EntryState::kEnding) return end(*e, e->doom, true);
  move(*e, late ? EntryState::kLate : EntryState::kCounted);
  give_gradient_to_all(*e);
}

void Ledger::end(Entry& e, std::string_view cause, bool device_done) {
  const auto leases = entries_.unclaim_all(e);
  for (const auto& [lease, claim] : leases) port_.send(claim.holder, Gone{lease});
  if (e.state == EntryState::kUndoing) return;
  if (is_on_device(e.state) && !device_done) {
    if (e.state != EntryState::kEnding) move(e, EntryState::kEnding);
    e.doom = cause;
    return;
  }
  refuse_frames(e);
  courier_.close(e.microbatch);
  const bool in_window = windows_.slot_of(e.name.serial).has_value();
  say(in_window ? EventKind::kUndo : EventKind::kDrop, e, cause);
  if (in_window) return move(e, EntryState::kUndoing);
  drop_next_.push_back(e.name.serial);
  port_.discard(e.name.serial);
  move(e, EntryState::kGone);
}

void Ledger::fail(Entry& e, BusyReason why, std::string_view cause) {
  for (const auto& [lease, claim] : e.leases) port_.send(claim.holder, Busy{lease, why, 0});
  end(e, cause, true);
}

void Ledger::undo_done(EntrySerial serial, bool exact) {
  Entry* e = entries_.find(serial);
  SHOAL_CHECK(e != nullptr && e->state == EntryState::kUndoing);
  ++counters_.undone;
  say(EventKind::kUndone, *e, exact ? "" : "inexact");
  windows_.remove(serial);
  port_.discard(serial);
  move(*e, EntryState::kGone);
}

void Ledger::secure(const std::vector<EntrySerial>& serials) {
  for (const EntrySerial serial : serials) {
    windows_.secure(serial);
    Entry* e = entries_.find(serial);
    if (e == nullptr || e->state != EntryState::kCommitted) continue;
    move(*e, EntryState::kMerged);
    say(EventKind::kMerged, *e);
    if (e->microbatch.serial >= low_of(e->microbatch.trainer)) continue;
    courier_.forget(e->microbatch);
    move(*e, EntryState::kGone);
  }
}

void Ledger::say(EventKind kind, const Entry& e, std::string_view cause) {
  port_.write(entry_event(kind, e.microbatch, e.name, cause));
}

std::map<Session, std::vector<ProgressItem>> Ledger::progress() const {
  std::map<Session, std::vector<ProgressItem>> result;
  for (const EntrySerial serial : entries_.active()) {
    const Entry& e = *entries_.find(serial);
    for (const auto& [lease, claim] : e.leases)
      result[claim.holder].push_back({lease, phase_of(e, courier_, windows_)});
  }
  return result;
}

std::uint64_t Ledger::low_of(std::uint64_t trainer) const {
  const auto it = low_.find(trainer);
  return it == low_.end() ? 0 : it->second;
}

// The last stage computes a backward behind each forward at once; elsewhere it waits for the next stage between them.
std::uint32_t Ledger::queue_ms() const {
  double us = 0;
  for (const EntrySerial serial : entries_.active()) {
    const Entry& e = *entries_.find(serial);
    if (!is_queued(e, windows_)) continue;
    const bool forward = e.state == EntryState::kReady || e.state == EntryState::kForward;
    if (forward) us += forward_us_;
    if (!forward || (!options_.next && e.kind == ForwardKind::kTrain)) us += backward_us_;
  }
  return static_cast<std::uint32_t>(us / 1000);
}

std::size_t Ledger::queued() const {
  return static_cast<std::size_t>(
      std::count_if(entries_.active().begin(), entries_.active().end(),
                    [this](EntrySerial serial) { return is_queued(*entries_.find(serial), windows_); }));
}

bool Ledger::quiet() const {
  return entries_.live() == 0 && windows_.empty() && settle_next_.empty() && drop_next_.empty();
}

bool Ledger::step_ready(StepId step) const {
  if (!windows_.announced(step)) return false;
  return std::none_of(entries_.active().begin(), entries_.active().end(),
                      [&](EntrySerial serial) { return entries_.find(serial)->step == step; });
}

}  // namespace shoal
