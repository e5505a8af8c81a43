// Peers of the harness: what runtime/stage_peer*.cc does around a ledger and a courier, without tensors.
#include <algorithm>

#include "hop_world.h"

namespace shoal::hop {

class Actor::Policy final : public RoutingPolicy {
 public:
  Policy(World& world, const Session& self) : world_(world), self_(self), plain_(make_rendezvous_policy()) {}
  std::optional<Session> pick(SampleId sample, std::span<const Candidate> candidates) const override {
    if (world_.choose)
      if (const auto chosen = world_.choose(self_, sample, candidates)) return chosen;
    return plain_->pick(sample, candidates);
  }

 private:
  World& world_;
  Session self_;
  std::unique_ptr<RoutingPolicy> plain_;
};

void Actor::make_courier(CourierPort& port) {
  policy_ = std::make_unique<Policy>(world_, self_);
  courier_ = std::make_unique<Courier>(port, *policy_, rates_, self_);
}

bool Actor::on_courier_message(const Session& from, const Message& message) {
  const TimePoint now = world_.now();
  courier_->on_heard(from, now);
  if (const auto* m = std::get_if<Busy>(&message))
    courier_->on_busy(from, *m, now);
  else if (const auto* m = std::get_if<Have>(&message))
    courier_->on_have(from, *m, now);
  else if (const auto* m = std::get_if<Gone>(&message))
    courier_->on_gone(from, *m, now);
  else if (const auto* m = std::get_if<NeedKeyFrame>(&message))
    courier_->on_need_key_frame(from, *m, now);
  else if (const auto* m = std::get_if<Progress>(&message))
    courier_->on_progress(from, *m, now);
  else if (const auto* m = std::get_if<Waiting>(&message))
    courier_->on_waiting(from, *m, now);
  else
    return false;
  return true;
}

void Actor::list_changed(const MemberList& list, const std::function<void(const Session&)>& over) {
  for (const Session& session : roster_.update(list).over) {
    courier_->on_session_over(session, world_.now());
    over(session);
  }
}

void Actor::check_branch(const Lease& lease, BranchEnd end) {
  const bool fits = end == BranchEnd::kSent ? frames_out_.insert(lease).second : frames_out_.erase(lease) == 1;
  if (!fits) world_.violate("a branch that ended twice, or without having been sent");
}

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

PeerActor::PeerActor(World& world, Session self, StageId stage) : Actor(world, self), stage_(stage) {
  make_courier(*this);
  LedgerOptions options;
  options.self = self;
  options.stage = stage;
  options.stages = world.options().stages;
  options.credits = world.options().credits;
  options.recovery_credits = 2;
  options.lease = world.options().lease;
  options.inner_batch = world.options().inner_batch * kTargets;
  LedgerPort& port = *this;  // the base is private: converted here
  ledger_ = std::make_unique<Ledger>(port, options);
  ledger_->set_serving(true);
}

void PeerActor::on_members(const MemberList& list) {
  list_changed(list, [this](const Session& session) { ledger_->on_session_over(session, world_.now()); });
  pump();
}

void PeerActor::on_link_down(const Session& session) {
  std::erase_if(gradients_, [&](const auto& item) { return item.second.first == session; });
  std::erase_if(inputs_, [&](const auto& item) {
    const Ledger::Entry* entry = ledger_->find(item.second);
    return entry == nullptr || entry->transfer_from == session;
  });
  roster_.note_down(session, world_.now());
  courier_->on_link_down(session, world_.now());
  ledger_->on_link_down(session, world_.now());
  pump();
}

void PeerActor::on_message(const Session& from, Message& message, TransferId transfer) {
  const TimePoint now = world_.now();
  roster_.note_up(from);
  if (on_courier_message(from, message)) {
  } else if (auto* m = std::get_if<Forward>(&message)) {
    if (const auto serial = ledger_->on_forward(from, *m, transfer, now)) {
      kept_.insert(*serial);
      inputs_[transfer] = *serial;
    }
  } else if (auto* m = std::get_if<Gradient>(&message)) {
    if (!courier_->wants(from, *m, now))
      world_.refuse(transfer);
    else if (transfer == 0)
      courier_->on_gradient(from, *m, {}, now);
    else
      gradients_[transfer] = {from, *m};
  } else if (auto* m = std::get_if<Take>(&message)) {
    ledger_->on_take(from, *m, now);
  } else if (auto* m = std::get_if<Release>(&message)) {
    ledger_->on_release(from, *m, now);
  } else if (auto* m = std::get_if<Renew>(&message)) {
    ledger_->on_renew(from, *m, now);
  } else if (auto* m = std::get_if<Hint>(&message)) {
    ledger_->on_hint(from, *m, now);
  } else if (auto* m = std::get_if<Commit>(&message)) {
    ledger_->on_commit(from, *m, now);
  }
  pump();
}

void PeerActor::on_frames(const Session& from, TransferId transfer, bool whole) {
  courier_->on_heard(from, world_.now());
  if (const auto it = inputs_.find(transfer); it != inputs_.end()) {
    const EntrySerial serial = it->second;
    inputs_.erase(it);
    if (whole && kept_.contains(serial))
      ledger_->inputs_arrived(serial);
    else
      ledger_->inputs_lost(serial, BusyReason::kFailed);
  } else if (const auto it = gradients_.find(transfer); it != gradients_.end()) {
    const Gradient message = it->second.second;
    gradients_.erase(it);
    if (whole)
      courier_->on_gradient(from, message, {}, world_.now());
    else
      courier_->on_gone(from, Gone{message.lease}, world_.now());
  }
  pump();
}

void PeerActor::on_step(const Step& step) {
  ledger_->on_step(step, world_.now());
  pump();
}

void PeerActor::tick() {
  const TimePoint now = world_.now();
  ledger_->tick(now);
  courier_->tick(now);
  const bool beat = now >= next_beat_;
  if (beat) next_beat_ = now + 250ms;
  std::map<Lease, HopPhase> told;
  for (auto& [holder, items] : ledger_->progress()) {
    Progress message;
    for (const ProgressItem& item : items) {
      const auto known = told_.find(item.lease);
      if (beat || known == told_.end() || known->second != item.phase) message.items.push_back(item);
      told[item.lease] = item.phase;
    }
    if (!message.items.empty()) send(holder, std::move(message));
  }
  told_ = std::move(told);
  if (now >= next_renewal_) {
    next_renewal_ = now + world_.options().lease / 6;
    for (auto& [session, leases] : courier_->renewals()) send(session, Renew{std::move(leases), {}});
  }
  pump();
}

void PeerActor::pump() {
  if (busy_ || hold_jobs) return;
  const auto job = ledger_->next_job(false);
  if (!job) return;
  busy_ = true;
  if (job->kind == JobKind::kInnerStep)
    for (const auto& [serial, entry] : ledger_->window(job->slot)->entries)
      if (const Ledger::Entry* e = ledger_->find(serial); e == nullptr || e->state != EntryState::kCommitted)
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
      const MicrobatchId id = ledger_->find(job.serial)->microbatch;
      const bool delta = !ledger_->find(job.serial)->key_lease;
      if (delta && world_.base_lost()) {
        if (ledger_->base_missing(job.serial)) return;
        return ledger_->forward_done(job.serial, false, 0, 0, 1000, now);
      }
      if (job.kind == JobKind::kForward) device.items[job.serial] = {id, device.stamp, true, false, WindowSlot::kA};
      return ledger_->forward_done(job.serial, true, static_cast<double>(id.serial), kTargets, 1000, now);
    }
    case JobKind::kBackward: {
      const bool recomputed = device.backward(job.serial, job.slot);
      return ledger_->backward_done(job.serial, true, device.items.at(job.serial).stamp, recomputed, 1000, now);
    }
    case JobKind::kUndo:
      return ledger_->undo_done(job.serial, device.undo(job));
    case JobKind::kInnerStep:
      device.write(job.slot);
      return ledger_->step_done(job.slot, device.stamp);
    case JobKind::kApplyShift:
      return world_.violate("a shift that nobody asked for");
    case JobKind::kRelease:
      return device.release(job);
  }
}

void PeerActor::check_window(WindowSlot slot) {
  CountTag sum = 0;
  if (const Windows::Window* window = ledger_->window(slot)) {
    for (const auto& [serial, entry] : window->entries) {
      const Ledger::Entry* e = ledger_->find(serial);
      if (e == nullptr) return world_.violate("a window holds an entry that the ledger forgot");
      if (e->state != EntryState::kBackward)
        sum += count_tag(e->microbatch);  // its place is taken before the device adds it
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
  if (ledger_->counters().inexact_undo > 0) world_.violate("an inexact undo");
  if (ledger_->live() > world_.options().credits + 2) world_.violate("more live entries than credits");
  std::set<MicrobatchId> live;
  for (const auto& [serial, e] : ledger_->entries()) {
    if (e.state != EntryState::kCommitted && !live.insert(e.microbatch).second)
      world_.violate("two live entries of one microbatch");
    if (e.leases.size() > Ledger::kLeasesMax) world_.violate("too many claims on one entry");
    if (e.state != EntryState::kCommitted && e.leases.empty() && !e.doomed && e.state != EntryState::kUndoing)
      world_.violate("an entry that nobody claims lives on");
  }
}

// ---- ports ----

std::vector<Session> PeerActor::candidates(StageId stage) {
  auto result = roster_.candidates(stage, world_.now());
  std::erase(result, self_);
  return result;
}

Result<TransferId> PeerActor::send_forward(const Session& to, Forward message, bool) {
  const Ledger::Entry* entry = ledger_->find_live(message.microbatch);
  if (entry == nullptr || !kept_.contains(entry->serial)) world_.violate("a Forward without its input");
  return world_.send(self_, to, std::move(message), true);
}

void PeerActor::send(const Session& to, Message message) { (void)world_.send(self_, to, std::move(message), false); }
void PeerActor::ask_trainer(Waiting message) { send(world_.trainer().self(), message); }
void PeerActor::drop_transfer(const Session&, TransferId transfer) { world_.drop(transfer); }
void PeerActor::refuse_frames(const Session&, TransferId transfer) { world_.refuse(transfer); }

void PeerActor::on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes>) {
  if (gradient.path.size() + stage_.value + 1 != world_.options().stages) world_.violate("a path of the wrong length");
  ledger_->gradient_arrived(microbatch, gradient, world_.now());
}

bool PeerActor::send_gradient(const Session& to, Gradient message, EntrySerial) {
  return world_.send(self_, to, std::move(message), stage_.value > 0).ok();
}

void PeerActor::open_hop(EntrySerial serial) {
  const Ledger::Entry& entry = *ledger_->find(serial);
  if (courier_->holds(entry.microbatch)) return world_.violate("two hops of one microbatch");
  HopSpec spec;
  spec.microbatch = entry.microbatch;
  spec.sample = entry.sample;
  spec.kind = entry.kind;
  spec.step = entry.step;
  spec.to = StageId(static_cast<std::uint16_t>(stage_.value + 1));
  spec.above = entry.above;
  spec.above.push_back(self_);
  spec.hint = entry.hint;
  courier_->open(std::move(spec), world_.now());
}

void PeerActor::commit_hop(const MicrobatchId& microbatch) {
  courier_->commit(microbatch);
  if (const Ledger::Entry* entry = ledger_->find_live(microbatch)) kept_.erase(entry->serial);
}

void PeerActor::take(const MicrobatchId& microbatch, const GradientHint& hint) {
  courier_->take(microbatch, hint, world_.now());
}

void PeerActor::write(const EventRecord& event) {
  world_.note(self_, name_of(event.event), *event.microbatch, event.cause);
  if (event.event == EventName::kSettled) world_.settled(*this, *event.microbatch, *event.entry_name);
}

}  // namespace shoal::hop
