// What the device does for the ledger, windows, and what rounds secure.
#include <algorithm>
#include <utility>

#include "router/ledger.h"

namespace shoal {

void Ledger::inputs_arrived(EntrySerial serial) {
  Entry* e = entry(serial);
  if (e == nullptr || e->state != EntryState::kArriving) return;
  note_arrival(*e);
  e->transfer = 0;
  e->state = EntryState::kReady;
}

void Ledger::inputs_lost(EntrySerial serial, BusyReason why) {
  Entry* e = entry(serial);
  if (e == nullptr || e->state != EntryState::kArriving) return;
  e->transfer = 0;
  for (const auto& [lease, claim] : e->leases) port_.send(claim.holder, Busy{lease, why, 0});
  end_uncommitted(*e, "input lost");
}

bool Ledger::base_missing(EntrySerial serial) {
  Entry* e = entry(serial);
  SHOAL_CHECK(e != nullptr && e->state == EntryState::kForward);
  if (e->doomed || e->key_lease || !ask_key_frame(*e)) return false;
  e->state = EntryState::kArriving;
  return true;
}

// Of whom the frames came from, while that claim stands; else of anybody who claims the entry.
bool Ledger::ask_key_frame(Entry& e) {
  const auto can = [](const auto& item) { return !item.second.link_lost; };
  auto chosen = std::find_if(e.leases.begin(), e.leases.end(),
                             [&](const auto& item) { return can(item) && item.second.holder == e.transfer_from; });
  if (chosen == e.leases.end()) chosen = std::find_if(e.leases.begin(), e.leases.end(), can);
  if (chosen == e.leases.end()) return false;
  e.key_lease = chosen->first;
  e.transfer = 0;
  e.transfer_from = chosen->second.holder;
  ++counters_.key_frames;
  port_.write(entry_event(EventKind::kNeedKeyFrame, e.microbatch, entry_name_of(e)));
  port_.send(e.transfer_from, NeedKeyFrame{chosen->first});
  return true;
}

void Ledger::gradient_arrived(const MicrobatchId& microbatch, const Gradient& message) {
  Entry* e = live_entry(microbatch);
  if (e == nullptr || e->state != EntryState::kBelow) return;
  e->loss_sum = message.loss_sum;
  e->targets = message.targets;
  if (e->kind == ForwardKind::kEvaluate) {
    give_gradient_to_all(*e);
    const EntrySerial serial = e->serial;
    courier_.forget(microbatch);
    port_.discard(serial);
    erase(serial);
    return;
  }
  e->path.assign(1, entry_name_of(*e));
  e->path.insert(e->path.end(), message.path.begin(), message.path.end());
  e->state = EntryState::kQueued;
}

void Ledger::gradient_rejected(EntrySerial serial) {
  Entry* e = entry(serial);
  if (e == nullptr) return;
  ++counters_.non_finite;
  e->path.clear();
  if (e->state == EntryState::kBackward && !std::exchange(e->late, false)) windows_.remove(serial);
  if (e->state == EntryState::kBackward || e->state == EntryState::kQueued) e->state = EntryState::kBelow;
  if (e->doomed) end_uncommitted(*e, e->doom);
}

std::optional<Job> Ledger::release_job() {
  if (settle_next_.empty() && drop_next_.empty()) return std::nullopt;
  Job job;
  job.kind = JobKind::kRelease;
  job.settled.swap(settle_next_);
  job.dropped.swap(drop_next_);
  return job;
}

std::optional<Job> Ledger::next_job(bool shift_pending) {
  if (auto job = release_job()) return job;
  for (const EntrySerial serial : active_)
    if (find(serial)->state == EntryState::kUndoing)
      return Job{.kind = JobKind::kUndo,
                 .serial = serial,
                 .slot = windows_.slot_of(serial).value_or(WindowSlot::kA),
                 .empties = windows_.alone(serial)};
  if (const Windows::Window* window = windows_.ready(stamp_))
    return Job{.kind = JobKind::kInnerStep,
               .slot = window->slot,
               .targets = window->targets(),
               .run_targets = window->run_targets};
  if (shift_pending && windows_.empty()) return Job{.kind = JobKind::kApplyShift};
  for (const EntrySerial serial : active_) {
    Entry& e = *entry(serial);
    if (e.state != EntryState::kQueued) continue;
    if (too_late(e)) {
      e.late = true;
      e.state = EntryState::kBackward;
      return Job{.kind = JobKind::kBackward, .serial = serial, .late = true};
    }
    const auto slot = windows_.room(e.step);
    if (!slot) {
      counters_.window_wait += !e.waited;
      e.waited = true;
      continue;
    }
    windows_.add(*slot, serial, e.targets, stamp_);  // its place is taken before the device starts
    e.state = EntryState::kBackward;
    return Job{.kind = JobKind::kBackward, .serial = serial, .slot = *slot};
  }
  for (const EntrySerial serial : active_) {
    Entry& e = *entry(serial);
    if (e.state != EntryState::kReady || too_early(e)) continue;
    e.state = EntryState::kForward;
    ++counters_.forwards;
    return Job{.kind = e.kind == ForwardKind::kEvaluate ? JobKind::kEvaluate : JobKind::kForward, .serial = serial};
  }
  return std::nullopt;
}

void Ledger::forward_done(EntrySerial serial, const ForwardResult& result, TimePoint now) {
  Entry* e = entry(serial);
  SHOAL_CHECK(e != nullptr && e->state == EntryState::kForward);
  e->forward_us = result.took_us;
  e->first_step = steps_made_;
  note_job(result.took_us);
  e->state = EntryState::kBelow;
  if (e->doomed) return end_uncommitted(*e, e->doom);
  if (!result.ok) {
    ++counters_.non_finite;
    for (const auto& [lease, claim] : e->leases) port_.send(claim.holder, Busy{lease, BusyReason::kFailed, 0});
    return end_uncommitted(*e, "forward failed");
  }
  if (!is_last()) {
    port_.write(entry_event(EventKind::kForward, e->microbatch, entry_name_of(*e)));
    open_hop(*e, result, now);
    return;
  }
  e->loss_sum = result.loss_sum;
  e->targets = result.targets;
  port_.write(entry_event(EventKind::kForward, e->microbatch, entry_name_of(*e)));
  if (e->kind == ForwardKind::kEvaluate) {
    Gradient loss;
    loss.loss_sum = result.loss_sum;
    loss.targets = result.targets;
    gradient_arrived(e->microbatch, loss);
    return;
  }
  e->path.assign(1, entry_name_of(*e));
  e->state = EntryState::kQueued;
}

void Ledger::open_hop(const Entry& e, const ForwardResult& result, TimePoint now) {
  HopSpec spec;
  spec.microbatch = e.microbatch;
  spec.sample = e.sample;
  spec.epoch = e.epoch;
  spec.kind = e.kind;
  spec.versions = e.versions;
  spec.step = e.step;
  spec.to = StageId(static_cast<std::uint16_t>(options_.stage.value + 1));
  spec.above = e.above;
  spec.above.push_back(options_.self);
  spec.frame_bytes = result.frame_bytes;
  spec.base = result.base;
  spec.hint = e.hint;
  courier_.open(std::move(spec), now);
}

void Ledger::backward_done(EntrySerial serial, bool ok, WeightStamp stamp, bool recomputed, std::uint32_t took_us) {
  Entry* e = entry(serial);
  SHOAL_CHECK(e != nullptr && e->state == EntryState::kBackward);
  e->backward_us = took_us;
  note_job(took_us);
  if (!ok) {
    ++counters_.non_finite;
    if (!std::exchange(e->late, false)) windows_.remove(serial);
    e->state = EntryState::kBelow;
    for (const auto& [lease, claim] : e->leases) port_.send(claim.holder, Busy{lease, BusyReason::kFailed, 0});
    return end_uncommitted(*e, "backward failed");
  }
  counters_.recomputed += recomputed;
  ++(e->late ? counters_.late : counters_.counted);
  e->state = EntryState::kCounted;
  e->stamp = stamp;
  if (!e->late) windows_.set_stamp(serial, stamp);
  port_.write(entry_event(e->late ? EventKind::kLate : EventKind::kCounted, e->microbatch, entry_name_of(*e)));
  if (e->doomed) return end_uncommitted(*e, e->doom);
  give_gradient_to_all(*e);
}

void Ledger::end_uncommitted(Entry& e, std::string_view cause) {
  SHOAL_CHECK(e.state != EntryState::kCommitted);
  for (const auto& [lease, claim] : e.leases) by_lease_.erase(lease);
  const auto leases = std::move(e.leases);
  e.leases.clear();
  for (const auto& [lease, claim] : leases) port_.send(claim.holder, Gone{lease});
  if (e.state == EntryState::kUndoing) return;
  if (e.transfer != 0) port_.refuse_frames(e.transfer_from, e.transfer);
  e.transfer = 0;
  if (e.state == EntryState::kForward ||
      e.state == EntryState::kBackward) {  // the device has it: ended when that is done
    e.doomed = true;
    e.doom = cause;
    return;
  }
  courier_.close(e.microbatch, ReleaseWhy::kOver);
  const bool in_window = e.state == EntryState::kCounted && !e.late;
  port_.write(entry_event(in_window ? EventKind::kUndo : EventKind::kDrop, e.microbatch, entry_name_of(e), cause));
  if (in_window) {
    e.state = EntryState::kUndoing;
    return;
  }
  ++counters_.dropped;
  drop_next_.push_back(e.serial);
  port_.discard(e.serial);
  erase(e.serial);
}

void Ledger::undo_done(EntrySerial serial, bool exact) {
  Entry* e = entry(serial);
  SHOAL_CHECK(e != nullptr && e->state == EntryState::kUndoing);
  ++counters_.undone;
  counters_.inexact_undo += !exact;
  port_.write(entry_event(EventKind::kUndone, e->microbatch, entry_name_of(*e), exact ? "" : "inexact"));
  windows_.remove(serial);
  port_.discard(serial);
  erase(serial);
}

void Ledger::step_done(WindowSlot slot, WeightStamp stamp) {
  const Windows::Window* window = windows_.at(slot);
  SHOAL_CHECK(window != nullptr);
  stamp_ = stamp;
  ++steps_made_;
  ++counters_.inner_steps;
  for (const auto& [serial, part] : window->entries) {
    stepped_.insert(serial);
    if (stepped_targets_.emplace(serial, part.targets).second) stepped_sum_ += part.targets;
  }
  windows_.pop(slot);
}

void Ledger::flush() { windows_.flush(); }

void Ledger::secure(const std::vector<EntrySerial>& serials) {
  for (const EntrySerial serial : serials) {
    stepped_.erase(serial);
    if (const auto stepped = stepped_targets_.extract(serial)) stepped_sum_ -= stepped.mapped();
    Entry* e = entry(serial);
    if (e == nullptr) continue;
    e->merged = true;
    port_.write(entry_event(EventKind::kMerged, e->microbatch, entry_name_of(*e)));
    if (e->microbatch.serial < low_of(e->microbatch.trainer)) {
      courier_.forget(e->microbatch);
      erase(serial);
    }
  }
}

void Ledger::pop_step(StepId step) {
  steps_.erase(step);
  if (step > step_done_) ++steps_made_;
  step_done_ = std::max(step_done_, step);
  if (const Windows::Window* window = windows_.step_window(step)) windows_.pop(window->slot);
}

void Ledger::note_job(std::uint32_t took_us) { job_us_ += (job_us_ == 0 ? 1.0 : 0.1) * (took_us - job_us_); }

void Ledger::erase(EntrySerial serial) {
  Entry* e = entry(serial);
  for (const auto& [lease, claim] : e->leases) by_lease_.erase(lease);
  if (const auto it = live_.find(e->microbatch); it != live_.end() && it->second == serial) live_.erase(it);
  active_.erase(serial);
  entries_.erase(serial);
}

}  // namespace shoal
