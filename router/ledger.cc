// Messages and claims. The device's side: ledger_jobs.cc; questions: ledger_look.cc.
#include "router/ledger.h"

#include <algorithm>
#include <utility>

namespace shoal {
namespace {

CommitState decided_state(const Ledger::Entry& e) {
  if (e.late) return CommitState::kDropped;
  return e.merged ? CommitState::kMerged : CommitState::kCommitted;
}

}  // namespace

Ledger::Ledger(LedgerPort& port, Courier& courier, LedgerOptions options)
    : port_(port), courier_(courier), options_(std::move(options)), windows_(options_.inner_batch) {}

bool Ledger::closed(const Forward& message) const {
  const MicrobatchId& id = message.microbatch;
  if (id.serial < low_of(id.trainer) || closed_.contains(id)) return true;
  if (const Entry* live = find_live(id); live != nullptr && live->state == EntryState::kCommitted) return true;
  return message.step.value > 0 && (message.step <= step_done_ || steps_.contains(message.step));
}

std::optional<EntrySerial> Ledger::on_forward(const Session& from, const Forward& message, TransferId transfer,
                                              TimePoint now) {
  const MicrobatchId& id = message.microbatch;
  if (transfer != 0 && key_frame_comes(message, from)) {
    Entry& e = *entry(by_lease_.at(message.lease));
    e.transfer = transfer;
    e.awaited = now;
    return e.serial;
  }
  if (by_lease_.contains(message.lease)) {  // a repeat
    if (transfer != 0 && entry(by_lease_.at(message.lease))->transfer != transfer) port_.refuse_frames(from, transfer);
    return std::nullopt;
  }
  if (closed(message)) {
    busy(from, message.lease, BusyReason::kClosed, transfer);
    return std::nullopt;
  }
  Entry* live = live_entry(id);
  if (live != nullptr) {
    answer_live(*live, from, message, transfer, now);
    return std::nullopt;
  }
  if (const auto why = refusal(from, message)) {
    busy(from, message.lease, *why, transfer);
    return std::nullopt;
  }
  const EntrySerial serial = next_serial_++;
  Entry& e = entries_[serial];
  active_.insert(serial);
  e.microbatch = id;
  e.serial = serial;
  e.sample = message.sample;
  e.epoch = message.epoch;
  e.kind = message.kind;
  e.versions = message.versions;
  e.step = message.step;
  e.hint = message.hint;
  e.transfer = transfer;
  e.transfer_from = from;
  e.awaited = now;
  std::erase_if(arrivals_, [&](const auto& a) {  // of a trainer's life before; members' sessions end by name
    return a.first.peer_tag == from.peer_tag && a.first != from;
  });
  arrivals_.try_emplace(from);
  live_[id] = serial;
  add_lease(e, from, message.lease, message.above, now);
  ++counters_.accepted;
  port_.write(entry_event(EventKind::kEntry, id, entry_name_of(e)));
  return serial;
}

bool Ledger::key_frame_comes(const Forward& message, const Session& from) const {
  const auto it = by_lease_.find(message.lease);
  const Entry* e = it == by_lease_.end() ? nullptr : find(it->second);
  return e != nullptr && e->state == EntryState::kArriving && e->transfer == 0 && e->key_lease == message.lease &&
         e->transfer_from == from;
}

std::optional<BusyReason> Ledger::refusal(const Session& from, const Forward& message) const {
  if (leaving_) return BusyReason::kLeaving;
  if (!serving_) return BusyReason::kNotServing;
  const std::size_t limit = options_.credits + (message.hint ? options_.recovery_credits : 0);
  if (live() >= limit || arriving_of(from) >= arriving_allowed(from)) return BusyReason::kNoCredit;
  return std::nullopt;
}

// A second branch reached an entry that lives here: it joins, nothing is computed.
void Ledger::answer_live(Entry& e, const Session& from, const Forward& message, TransferId transfer, TimePoint now) {
  if (e.state == EntryState::kUndoing || e.doomed || e.leases.size() >= kLeasesMax)  // undone: a fresh entry follows
    return busy(from, message.lease, BusyReason::kCrowded, transfer);
  ++counters_.joined;
  if (transfer != 0) port_.refuse_frames(from, transfer);
  add_lease(e, from, message.lease, message.above, now);
  port_.write(entry_event(EventKind::kJoined, e.microbatch, entry_name_of(e)));
  port_.send(from, Have{message.lease});
  if (e.state == EntryState::kCounted) {
    give_gradient(e, message.lease);
  } else if (message.hint && e.state <= EntryState::kBelow) {
    e.hint = message.hint;
    if (e.state == EntryState::kBelow) courier_.take(e.microbatch, *message.hint, now);
  }
}

void Ledger::on_take(const Session& from, const Take& message, TimePoint now) {
  Entry* e = message.entry_name.session == options_.self ? entry(message.entry_name.serial) : nullptr;
  if (by_lease_.contains(message.lease)) return;  // a repeat
  if (e == nullptr || e->microbatch != message.microbatch || e->state >= EntryState::kUndoing || e->doomed ||
      e->leases.size() >= kLeasesMax) {
    port_.send(from, Gone{message.lease});
    return;
  }
  add_lease(*e, from, message.lease, message.above, now);
  port_.write(entry_event(EventKind::kTaken, e->microbatch, entry_name_of(*e)));
  if (e->state == EntryState::kCounted)
    give_gradient(*e, message.lease);
  else
    port_.send(from, Have{message.lease});
}

void Ledger::on_hint(const Session& from, const Hint& message, TimePoint now) {
  const auto it = by_lease_.find(message.lease);
  Entry* e = it == by_lease_.end() ? nullptr : entry(it->second);
  if (e == nullptr || e->leases.at(message.lease).holder != from || e->state > EntryState::kBelow) return;
  e->hint = message.where;
  if (e->state == EntryState::kBelow) courier_.take(e->microbatch, message.where, now);
}

void Ledger::on_release(const Session& from, const Release& message) {
  const auto it = by_lease_.find(message.lease);
  if (it == by_lease_.end()) return;
  Entry* e = entry(it->second);
  if (e->leases.at(message.lease).holder != from) return;
  drop_lease(message.lease, "released");
}

void Ledger::on_renew(const Session& from, const Renew& message, TimePoint now) {
  for (const Renewal& renewal : message.leases) {
    const auto it = by_lease_.find(renewal.lease);
    if (it == by_lease_.end()) {
      port_.send(from, Gone{renewal.lease});
      continue;
    }
    Entry& e = *entry(it->second);
    LeaseIn& claim = e.leases.at(renewal.lease);
    if (claim.holder != from) continue;
    claim.expires = now + options_.lease;
    claim.renewed = now;
    const bool lost = renewal.want && claim.sent && claim.link_lost && e.state == EntryState::kCounted;
    claim.link_lost = false;
    if (lost) give_gradient(e, renewal.lease);
  }
}

void Ledger::on_commit(const Session& from, const Commit& message) {
  CommitAck ack;
  for (const CommitItem& item : message.items) commit_item(item, ack);
  on_lows(message.lows);
  if (!ack.items.empty()) port_.send(from, std::move(ack));
}

void Ledger::commit_item(const CommitItem& item, CommitAck& ack) {
  if (item.path.empty()) return;  // malformed, as is an entry of ours under another microbatch
  const EntryName& entry_name = item.path.front();
  const MicrobatchId& id = item.microbatch;
  const bool mine = entry_name.session == options_.self;
  Entry* e = mine ? entry(entry_name.serial) : nullptr;
  if (e != nullptr && e->microbatch != id) return;
  if (!mine) {
    const Entry* loser = find_live(id);
    // Its children are released next. One of them may be the winner's as well, with no claim but ours left: it hears
    // first that it won.
    if (loser != nullptr && loser->state != EntryState::kCommitted && item.path.size() > 1) {
      Commit below;
      below.items.push_back({id, {item.path.begin() + 1, item.path.end()}});
      port_.send(item.path[1].session, std::move(below));
    }
    close_microbatch(id);
    return;
  }
  if (e != nullptr && e->state == EntryState::kCommitted) {
    ack.items.push_back({id, entry_name, decided_state(*e)});
    return;
  }
  if (e != nullptr && e->state == EntryState::kCounted && !e->doomed) {
    settle(*e);
    ack.items.push_back({id, entry_name, decided_state(*e)});
    return;
  }
  if (id.serial < low_of(id.trainer)) {  // long decided and forgotten
    ack.items.push_back({id, entry_name, CommitState::kMerged});
    return;
  }
  ++counters_.gone;
  port_.write(entry_event(EventKind::kCommitGone, id, entry_name));
  close_microbatch(id);
  ack.items.push_back({id, entry_name, CommitState::kGone});
}

void Ledger::settle(Entry& e) {
  e.state = EntryState::kCommitted;
  active_.erase(e.serial);
  ++counters_.committed;
  if (!e.late) {  // the executor has forgotten it
    windows_.settle(e.serial);
    settle_next_.push_back(e.serial);
  }
  port_.write(entry_event(EventKind::kSettled, e.microbatch, entry_name_of(e)));
  courier_.commit(e.microbatch);
  port_.discard(e.serial);
}

void Ledger::on_step(const Step& message) {
  if (message.step <= step_done_) return;  // a repeat
  std::set<EntrySerial> winners;
  CommitAck ignored;
  for (const CommitItem& item : message.winners) {
    if (item.path.size() <= options_.stage.value) continue;
    const EntryName& entry_name = item.path[options_.stage.value];
    if (entry_name.session != options_.self) continue;
    winners.insert(entry_name.serial);
    CommitItem below{item.microbatch, {item.path.begin() + options_.stage.value, item.path.end()}};
    commit_item(below, ignored);
  }
  steps_.insert(message.step);
  windows_.close_step(message.step);
  std::vector<EntrySerial> losers;
  for (const EntrySerial serial : active_)
    if (const Entry& e = *find(serial); e.step == message.step && e.kind == ForwardKind::kTrain)
      losers.push_back(serial);
  for (const EntrySerial serial : losers)
    if (Entry* e = entry(serial)) {
      const MicrobatchId id = e->microbatch;
      end_uncommitted(*e, "closed");
      if (id.serial >= low_of(id.trainer)) closed_.insert(id);
    }
}

void Ledger::on_lows(const std::vector<Low>& lows) {
  for (const Low& low : lows) on_low(low);
}

void Ledger::on_low(const Low& low) {
  auto& mine = low_[low.trainer];
  if (low.low <= mine) return;
  mine = low.low;
  std::vector<EntrySerial> old;
  for (auto it = live_.lower_bound({low.trainer, 0});
       it != live_.end() && it->first.trainer == low.trainer && it->first.serial < low.low; ++it)
    old.push_back(it->second);
  for (const EntrySerial serial : old) {
    Entry* e = entry(serial);
    if (e == nullptr) continue;
    if (e->state != EntryState::kCommitted) {
      end_uncommitted(*e, "closed");
    } else if (!stepped_.contains(serial) && !windows_.slot_of(serial)) {
      courier_.forget(e->microbatch);
      erase(serial);
    }
  }
  closed_.erase(closed_.lower_bound({low.trainer, 0}), closed_.lower_bound({low.trainer, low.low}));
}

void Ledger::on_link_down(const Session& session, TimePoint now) {
  std::vector<EntrySerial> lost;
  for (auto& [serial, e] : entries_) {
    for (auto& [lease, claim] : e.leases)
      if (claim.holder == session) claim.link_lost = true;
    if (e.state == EntryState::kArriving && e.transfer_from == session) lost.push_back(serial);
  }
  for (const EntrySerial serial : lost) inputs_lost(serial, BusyReason::kFailed);
  tick(now);  // tells the holders above about orphans
}

void Ledger::on_session_over(const Session& session) {
  std::vector<Lease> fallen;
  for (const auto& [serial, e] : entries_)
    for (const auto& [lease, claim] : e.leases)
      if (claim.holder == session) fallen.push_back(lease);
  for (const Lease& lease : fallen) drop_lease(lease, "session over");
  arrivals_.erase(session);
}

void Ledger::tick(TimePoint now) {
  give_up_arrivals(now);
  std::vector<Lease> expired;
  for (const EntrySerial serial : active_) {
    Entry& e = *entry(serial);
    if (e.leases.empty()) continue;
    bool orphan = e.kind == ForwardKind::kTrain;
    for (const auto& [lease, claim] : e.leases) {
      if (claim.expires <= now) expired.push_back(lease);
      if (!claim.link_lost && now - claim.renewed < options_.lease * 2 / 5) orphan = false;
    }
    if (orphan && !e.above.empty() && now - e.orphan_told >= options_.lease / 6) {
      e.orphan_told = now;
      const Waiting waiting{e.microbatch, entry_name_of(e), e.above.back()};
      if (e.above.size() > 2) port_.send(e.above[e.above.size() - 2], waiting);
      port_.ask_trainer(waiting);  // what was decided, it alone knows
    }
  }
  for (const Lease& lease : expired) {
    ++counters_.expired;
    drop_lease(lease, "expired");
  }
  ask_about_hearsay(now);
}

void Ledger::add_lease(Entry& e, const Session& from, const Lease& lease, const std::vector<Session>& above,
                       TimePoint now) {
  e.leases[lease] = {from, now + options_.lease, now, false, false};
  e.above = above;
  e.orphan_told = {};
  by_lease_[lease] = e.serial;
}

void Ledger::drop_lease(const Lease& lease, std::string_view cause) {
  const auto it = by_lease_.find(lease);
  if (it == by_lease_.end()) return;
  Entry& e = *entry(it->second);
  by_lease_.erase(it);
  e.leases.erase(lease);
  if (e.leases.empty()) {
    const bool kept = e.hearsay && !e.hearsay->over;
    if (e.state != EntryState::kCommitted && !kept) end_uncommitted(e, cause);
  } else if (e.state == EntryState::kArriving && e.key_lease == lease) {  // another claim's holder has the input too
    if (e.transfer != 0) port_.refuse_frames(e.transfer_from, std::exchange(e.transfer, 0));
    if (!ask_key_frame(e)) inputs_lost(e.serial, BusyReason::kFailed);
  }
}

void Ledger::busy(const Session& to, const Lease& lease, BusyReason why, TransferId transfer) {
  ++counters_.refused;
  if (transfer != 0) port_.refuse_frames(to, transfer);
  port_.send(to, Busy{lease, why, queue_ms()});
}

void Ledger::give_gradient(Entry& e, const Lease& lease) {
  LeaseIn& claim = e.leases.at(lease);
  claim.sent = true;
  Gradient message;
  message.lease = lease;
  message.microbatch = e.microbatch;
  message.path = e.path;
  message.loss_sum = e.loss_sum;
  message.targets = e.targets;
  message.forward_us = e.forward_us;
  message.backward_us = e.backward_us;
  claim.link_lost = !port_.send_gradient(claim.holder, std::move(message), e.serial);
}

void Ledger::give_gradient_to_all(Entry& e) {
  std::vector<Lease> leases;
  for (const auto& [lease, claim] : e.leases) leases.push_back(lease);
  for (const Lease& lease : leases) give_gradient(e, lease);
}

void Ledger::close_microbatch(const MicrobatchId& microbatch) {
  if (Entry* e = live_entry(microbatch); e != nullptr && e->state != EntryState::kCommitted)
    end_uncommitted(*e, "closed");
  if (microbatch.serial >= low_of(microbatch.trainer)) closed_.insert(microbatch);
}

}  // namespace shoal
