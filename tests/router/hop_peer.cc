// Peers of the harness: what runtime/stage_peer/ does around a ledger and a courier, without tensors. What every
// session has: hop_actor.cc.
#include <algorithm>

#include "common/route.h"
#include "hop_world.h"

namespace shoal::hop {

// ---- device ----

bool TagDevice::backward(EntrySerial serial, WindowSlot slot) {
  Item& item = items.at(serial);
  if (item.counted) faults.push_back("counted twice");
  const bool recomputed = !item.graph;
  if (recomputed) item.stamp = stamp;
  item.graph = false;
  item.counted = true;
  item.slot = slot;
  window[static_cast<std::size_t>(slot)] += count_tag(item.microbatch);
  return recomputed;
}

bool TagDevice::undo(const Job& job) {
  const auto it = items.find(job.serial);
  if (it == items.end() || !it->second.counted) {
    faults.push_back("an undo of what is not counted");
    return false;
  }
  const bool exact = it->second.stamp == stamp || it->second.stamp + 1 == stamp;
  CountTag& tag = window[static_cast<std::size_t>(it->second.slot)];
  tag -= count_tag(it->second.microbatch);
  if (job.empties) tag = 0;
  items.erase(it);
  return exact;
}

void TagDevice::release(const Job& job) {
  for (const EntrySerial serial : job.settled)
    if (const auto it = items.find(serial); it == items.end() || !it->second.counted)
      faults.push_back("settled, not counted");
    else
      items.erase(it);
  for (const EntrySerial serial : job.dropped)
    if (const auto it = items.find(serial); it != items.end()) {
      if (it->second.counted) faults.push_back("dropped, but counted");
      items.erase(it);
    }
}

void TagDevice::write(std::optional<WindowSlot> slot) {
  for (auto& [serial, item] : items) {
    if (item.stamp == stamp) continue;
    item.graph = false;
    if (item.counted) faults.push_back("a write over weights that an undo may need");
  }
  if (slot) unsecured += std::exchange(window[static_cast<std::size_t>(*slot)], 0);
  ++stamp;
}

// ---- peer ----

namespace {

LedgerOptions ledger_options(const World& world, const Session& self, StageId stage) {
  LedgerOptions options;
  options.self = self;
  options.stage = stage;
  options.next = route_of(stage, world.options().stages).next;
  options.lease = world.options().lease;
  return options;
}

}  // namespace

PeerActor::PeerActor(World& world, Session self, StageId stage)
    : Actor(world, self, route_of(stage, world.options().stages).next, peer_of(world.trainer_session())),
      stage_(stage),
      windows_({.inner_batch = world.options().inner_batch * kTargets}),
      credits_(world.options().credits, 2),
      ledger_(*this, courier_, windows_, credits_, ledger_options(world, self, stage)) {}

void PeerActor::on_members(const MemberList& list) {
  for (const Session& session : courier_.on_members(list, world_.now()).over) ledger_.on_session_over(session);
  pump();
}

void PeerActor::on_link_down(const Session& session) {
  std::erase_if(inputs_, [&](const auto& item) {
    const Entry* entry = ledger_.entries().find(item.second);
    return entry == nullptr || entry->transfer_from == session;
  });
  courier_.on_link_down(remote_of(session), world_.now());
  ledger_.on_link_down(session, world_.now());
  pump();
}

void PeerActor::on_message(const Session& from, Message& message, TransferId transfer) {
  const TimePoint now = world_.now();
  if (!hears(from)) {
    world_.refuse(transfer);
    if (const auto* forward = std::get_if<Forward>(&message))
      (void)world_.send(self_, from, Busy{forward->lease, BusyReason::kNotServing, 0}, false);
    return;
  }
  const bool trainer = neighbours_.is_trainer(remote_of(from));
  if (trainer) ledger_.heard_trainer(now);
  if (courier_.on_message(remote_of(from), message, transfer, now)) {
  } else if (auto* m = std::get_if<Forward>(&message)) {
    if (const auto serial = ledger_.on_forward(from, *m, transfer, now)) {
      kept_.insert(*serial);
      inputs_[transfer] = *serial;
    }
  } else if (auto* m = std::get_if<Take>(&message)) {
    ledger_.on_take(from, *m, now);
  } else if (auto* m = std::get_if<Release>(&message)) {
    ledger_.on_release(from, *m);
  } else if (auto* m = std::get_if<Renew>(&message)) {
    if (trainer) ledger_.on_lows(m->lows);
    ledger_.on_renew(from, *m, now);
  } else if (auto* m = std::get_if<Hint>(&message)) {
    ledger_.on_hint(from, *m, now);
  } else if (auto* m = std::get_if<Commit>(&message); m && trainer) {
    ledger_.on_commit(from, *m);
  } else if (m != nullptr) {
    ledger_.on_hearsay(*m, now);
  }
  pump();
}

void PeerActor::on_frames(const Session& from, TransferId transfer, bool whole) {
  Result<std::vector<Bytes>> frames = std::vector<Bytes>{};
  if (!whole) frames = make_error(ErrorCode::kUnreachable, "dropped by the sender");
  if (courier_.on_frames(remote_of(from), transfer, frames, world_.now())) return pump();
  if (const auto it = inputs_.find(transfer); it != inputs_.end()) {
    const EntrySerial serial = it->second;
    inputs_.erase(it);
    if (whole && kept_.contains(serial))
      ledger_.inputs_arrived(serial, world_.now());
    else
      ledger_.inputs_lost(serial, BusyReason::kFailed);
  }
  pump();
}

void PeerActor::on_step(const Step& step) {
  ledger_.on_step(step);
  pump();
}

void PeerActor::tick() {
  const TimePoint now = world_.now();
  ledger_.tick(now);
  courier_.tick(now);
  const bool beat = now >= next_beat_;
  if (beat) next_beat_ = now + 250ms;
  std::map<Lease, HopPhase> told;
  for (auto& [holder, items] : ledger_.progress()) {
    Progress message;
    for (const ProgressItem& item : items) {
      const auto known = told_.find(item.lease);
      if (beat || known == told_.end() || known->second != item.phase) message.items.push_back(item);
      told[item.lease] = item.phase;
    }
    if (!message.items.empty()) send(holder, std::move(message));
  }
  told_ = std::move(told);
  pump();
}

void PeerActor::pump() {
  if (busy_ || hold_jobs) return;
  const auto job = ledger_.next_job(false);
  if (!job) return;
  busy_ = true;
  if (job->kind == JobKind::kInnerStep)
    for (const auto& [serial, entry] : windows_.at(job->slot)->entries)
      if (const Entry* e = ledger_.entries().find(serial); e == nullptr || e->state != EntryState::kCommitted)
        world_.violate("an inner step with an entry that is not committed");
  const auto fixed = job_time.find(job->kind);
  Duration time = fixed != job_time.end() ? fixed->second : world_.job_duration();
  if (job->kind == JobKind::kRelease) time = 0ms;
  world_.after(*this, time, [this, job = *job] {
    job_done(job);
    busy_ = false;
    check();
    pump();
  });
}

void PeerActor::job_done(const Job& job) {
  const TimePoint now = world_.now();
  switch (job.kind) {
    case JobKind::kForward:
    case JobKind::kEvaluate: {
      if (!kept_.contains(job.serial)) return world_.violate("a forward without its input");
      const MicrobatchId id = ledger_.entries().find(job.serial)->microbatch;
      const bool delta = !ledger_.entries().find(job.serial)->key_lease;
      if (delta && world_.base_lost()) {
        if (ledger_.base_missing(job.serial)) return;
        return ledger_.forward_done(job.serial, {}, now);
      }
      if (job.kind == JobKind::kForward) device.items[job.serial] = {id, device.stamp, true, false, WindowSlot::kA};
      ForwardResult result;
      result.ok = true;
      result.loss_sum = static_cast<double>(id.serial);
      result.targets = kTargets;
      result.took_us = 1000;
      return ledger_.forward_done(job.serial, result, now);
    }
    case JobKind::kBackward: {
      const bool recomputed = device.backward(job.serial, job.slot);
      return ledger_.backward_done(job.serial, true, device.items.at(job.serial).stamp, recomputed, 1000);
    }
    case JobKind::kUndo:
      return ledger_.undo_done(job.serial, device.undo(job));
    case JobKind::kInnerStep:
      device.write(job.slot);
      return windows_.note_step(job.slot, device.stamp);
    case JobKind::kApplyShift:
      return world_.violate("a shift that nobody asked for");
    case JobKind::kRelease:
      return device.release(job);
  }
}

void PeerActor::check_window(WindowSlot slot) {
  CountTag sum = 0;
  if (const Windows::Window* window = windows_.at(slot)) {
    for (const auto& [serial, entry] : window->entries) {
      const Entry* e = ledger_.entries().find(serial);
      if (e == nullptr) return world_.violate("a window holds an entry that the ledger forgot");
      if (!is_on_device(e->state)) sum += count_tag(e->microbatch);  // its place is taken before the device adds it
    }
  }
  if (sum != device.window[static_cast<std::size_t>(slot)])
    world_.violate("an accumulator is not the sum of its window's entries");
}

void PeerActor::check() {
  for (const std::string& fault : device.faults) world_.violate(fault);
  device.faults.clear();
  check_window(WindowSlot::kA);
  check_window(WindowSlot::kB);
  if (ledger_.entries().live() > world_.options().credits + 2) world_.violate("more live entries than credits");
  std::set<MicrobatchId> live;
  for (const auto& [serial, e] : ledger_.entries().all()) {
    if (!is_final(e.state) && !live.insert(e.microbatch).second) world_.violate("two live entries of one microbatch");
    if (e.leases.size() > Ledger::kLeasesMax) world_.violate("too many claims on one entry");
    if (e.state < EntryState::kEnding && e.leases.empty() && !ledger_.hearsay().keeps(serial))
      world_.violate("an entry that nobody claims lives on");
  }
}

// ---- ports ----

std::vector<Bytes> PeerActor::frames_of(const Session& to, const Forward& message, bool key) {
  const Entry* entry = ledger_.entries().find_live(message.microbatch);
  if (entry == nullptr || !kept_.contains(entry->name.serial)) world_.violate("a Forward without its input");
  return Actor::frames_of(to, message, key);
}

bool PeerActor::ask_trainer(Waiting message) {
  return world_.send(self_, world_.trainer_session(), std::move(message), false).ok();
}

void PeerActor::refuse_frames(const Session&, TransferId transfer) { world_.refuse(transfer); }

void PeerActor::on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes>) {
  if (gradient.path.size() + stage_.value + 1 != world_.options().stages) world_.violate("a path of the wrong length");
  ledger_.gradient_arrived(microbatch, gradient);
}

bool PeerActor::send_gradient(const Session& to, Gradient message, EntrySerial) {
  std::vector<Bytes> frames;
  if (stage_.value > 0) frames.emplace_back();
  return neighbours_.send_to(to, std::move(message), std::move(frames)).ok();
}

void PeerActor::write(const EventRecord& event) {
  Actor::write(event);
  if (event.event == EventKind::kUndone && event.cause == "inexact") world_.violate("an inexact undo");
  if (event.event == EventKind::kSettled) world_.settled(*this, *event.microbatch, *event.entry_name);
}

}  // namespace shoal::hop
