// Messages and claims. The device's side and questions: ledger_jobs.cc.
#include "router/ledger.h"

#include <utility>

#include "common/check.h"

namespace shoal {
namespace {

CommitState decided_state(const Entry& e) {
  if (e.state == EntryState::kDropped) return CommitState::kDropped;
  return e.state == EntryState::kMerged ? CommitState::kMerged : CommitState::kCommitted;
}

}  // namespace

Ledger::Ledger(LedgerPort& port, Courier& courier, Windows& windows, const EntryCredits& credits, LedgerOptions options)
    : port_(port),
      courier_(courier),
      windows_(windows),
      options_(std::move(options)),
      credits_(credits),
      arrivals_({credits.limit(false), credits.limit(true) - credits.limit(false), options_.lease}),
      hearsay_(options_.lease) {}

void Ledger::move(Entry& e, EntryState to) {
  if (!may_follow(e.state, to))
    check_failed(__FILE__, __LINE__, "may_follow(e.state, to)", check_operands(name_of(e.state), name_of(to)));
  const EntrySerial serial = e.name.serial;
  if (e.state == EntryState::kArriving) arrivals_.forget(serial);
  if (e.state == EntryState::kCounted) hearsay_.forget(serial);
  e.state = to;
  if (to == EntryState::kCommitted) {
    windows_.settle(serial);
    settle_next_.push_back(serial);
  }
  if (is_final(to)) entries_.note_final(e);
  if (to == EntryState::kGone) entries_.erase(e);
}

bool Ledger::closed(const Forward& message) const {
  const MicrobatchId& id = message.microbatch;
  if (id.serial < low_of(id.trainer) || closed_.contains(id)) return true;
  if (const Entry* live = entries_.find_live(id); live != nullptr && is_final(live->state)) return true;
  return message.step.value > 0 && (message.step <= windows_.step_done() || windows_.announced(message.step));
}

std::optional<EntrySerial> Ledger::on_forward(const Session& from, const Forward& message, TransferId transfer,
                                              TimePoint now) {
  const MicrobatchId& id = message.microbatch;
  if (const Entry* e = entries_.claimed(message.lease)) {
    const auto awaited = arrivals_.transfer_of(e->name.serial);
    if (transfer == 0 || awaited == transfer) return std::nullopt;  // a repeat
    if (e->state == EntryState::kArriving && !awaited && e->key_lease == message.lease && e->transfer_from == from) {
      arrivals_.await(e->name.serial, from, transfer, now);
      return e->name.serial;
    }
    port_.refuse_frames(from, transfer);
    return std::nullopt;
  }
  if (closed(message)) {
    busy(from, message.lease, BusyReason::kClosed, transfer);
    return std::nullopt;
  }
  if (Entry* live = entries_.find_live(id)) {
    answer_live(*live, from, message, transfer, now);
    return std::nullopt;
  }
  if (const auto why = refusal(from, message)) {
    busy(from, message.lease, *why, transfer);
    return std::nullopt;
  }
  const EntrySerial serial = next_serial_++;
  Entry& e = entries_.make({options_.self, serial}, id);
  e.sample = message.sample;
  e.epoch = message.epoch;
  e.kind = message.kind;
  e.versions = message.versions;
  e.step = message.step;
  e.hint = message.hint;
  e.transfer_from = from;
  arrivals_.await(serial, from, transfer, now);
  add_lease(e, from, message.lease, message.above, now);
  ++counters_.accepted;
  EventRecord made = entry_event(EventKind::kEntry, id, e.name);
  made.about = from;
  port_.write(made);
  return serial;
}

std::optional<BusyReason> Ledger::refusal(const Session& from, const Forward& message) const {
  if (leaving_) return BusyReason::kLeaving;
  const std::size_t limit = credits_.limit(message.hint.has_value());
  if (entries_.live() >= limit || !arrivals_.may_announce(from)) return BusyReason::kNoCredit;
  return std::nullopt;
}

// A second branch reached an entry that lives here: it joins, nothing is computed.
void Ledger::answer_live(Entry& e, const Session& from, const Forward& message, TransferId transfer, TimePoint now) {
  if (e.state >= EntryState::kEnding || e.leases.size() >= kLeasesMax)  // ended: a fresh entry follows
    return busy(from, message.lease, BusyReason::kCrowded, transfer);
  if (transfer != 0) port_.refuse_frames(from, transfer);
  add_lease(e, from, message.lease, message.above, now);
  say(EventKind::kJoined, e);
  port_.send(from, Have{message.lease});
  if (is_handed_on(e.state)) {
    give_gradient(e, message.lease);
  } else if (message.hint && e.state <= EntryState::kBelow) {
    e.hint = message.hint;
    if (e.state == EntryState::kBelow) courier_.take(e.microbatch, *message.hint, now);
  }
}

void Ledger::on_take(const Session& from, const Take& message, TimePoint now) {
  Entry* e = message.entry_name.session == options_.self ? entries_.find(message.entry_name.serial) : nullptr;
  if (entries_.claimed(message.lease) != nullptr) return;  // a repeat
  if (e == nullptr || e->microbatch != message.microbatch || e->state >= EntryState::kEnding ||
      e->leases.size() >= kLeasesMax) {
    port_.send(from, Gone{message.lease});
    return;
  }
  add_lease(*e, from, message.lease, message.above, now);
  say(EventKind::kTaken, *e);
  if (is_handed_on(e->state))
    give_gradient(*e, message.lease);
  else
    port_.send(from, Have{message.lease});
}

void Ledger::on_hint(const Session& from, const Hint& message, TimePoint now) {
  Entry* e = entries_.claimed(message.lease);
  if (e == nullptr || e->leases.at(message.lease).holder != from || e->state > EntryState::kBelow) return;
  e->hint = message.where;
  if (e->state == EntryState::kBelow) courier_.take(e->microbatch, message.where, now);
}

void Ledger::on_release(const Session& from, const Release& message) {
  const Entry* e = entries_.claimed(message.lease);
  if (e == nullptr || e->leases.at(message.lease).holder != from) return;
  drop_lease(message.lease, "released");
}

void Ledger::on_renew(const Session& from, const Renew& message, TimePoint now) {
  for (const Renewal& renewal : message.leases) {
    Entry* e = entries_.claimed(renewal.lease);
    if (e == nullptr) {
      port_.send(from, Gone{renewal.lease});
      continue;
    }
    Claim& claim = e->leases.at(renewal.lease);
    if (claim.holder != from) continue;
    claim.expires = now + options_.lease;
    claim.renewed = now;
    const bool lost = renewal.want && claim.sent && claim.link_lost && is_handed_on(e->state);
    claim.link_lost = false;
    if (lost) give_gradient(*e, renewal.lease);
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
  Entry* e = mine ? entries_.find(entry_name.serial) : nullptr;
  if (e != nullptr && e->microbatch != id) return;
  if (!mine) {
    const Entry* loser = entries_.find_live(id);
    // Its children are released next. One of them may be the winner's as well, with no claim but ours left: it hears
    // first that it won.
    if (loser != nullptr && !is_final(loser->state) && item.path.size() > 1) {
      Commit below;
      below.items.push_back({id, {item.path.begin() + 1, item.path.end()}});
      port_.send(item.path[1].session, std::move(below));
    }
    close_microbatch(id);
    return;
  }
  if (e != nullptr && (is_final(e->state) || is_handed_on(e->state))) {
    if (!is_final(e->state)) settle(*e);
    ack.items.push_back({id, entry_name, decided_state(*e)});
    return;
  }
  if (id.serial < low_of(id.trainer)) {  // long decided and forgotten
    ack.items.push_back({id, entry_name, CommitState::kMerged});
    return;
  }
  port_.write(entry_event(EventKind::kCommitGone, id, entry_name));
  close_microbatch(id);
  ack.items.push_back({id, entry_name, CommitState::kGone});
}

void Ledger::settle(Entry& e) {
  move(e, e.state == EntryState::kLate ? EntryState::kDropped : EntryState::kCommitted);
  say(EventKind::kSettled, e);
  courier_.commit(e.microbatch);
  port_.discard(e.name.serial);
}

void Ledger::on_step(const Step& message) {
  if (message.step <= windows_.step_done()) return;  // a repeat
  CommitAck ignored;
  for (const CommitItem& item : message.winners) {
    if (item.path.size() <= options_.stage.value) continue;
    if (item.path[options_.stage.value].session != options_.self) continue;
    CommitItem below{item.microbatch, {item.path.begin() + options_.stage.value, item.path.end()}};
    commit_item(below, ignored);
  }
  windows_.close_step(message.step);
  std::vector<EntrySerial> losers;
  for (const EntrySerial serial : entries_.active())
    if (const Entry& e = *entries_.find(serial); e.step == message.step && e.kind == ForwardKind::kTrain)
      losers.push_back(serial);
  for (const EntrySerial serial : losers)
    if (Entry* e = entries_.find(serial)) {
      const MicrobatchId id = e->microbatch;
      end(*e, "closed");
      if (id.serial >= low_of(id.trainer)) closed_.insert(id);
    }
}

void Ledger::on_lows(const std::vector<Low>& lows) {
  for (const Low& low : lows) {
    auto& mine = low_[low.trainer];
    if (low.low <= mine) continue;
    mine = low.low;
    for (const EntrySerial serial : entries_.below(low)) {
      Entry* e = entries_.find(serial);
      if (e == nullptr) continue;
      if (!is_final(e->state)) {
        end(*e, "closed");
      } else if (!windows_.holds(serial)) {
        courier_.forget(e->microbatch);
        move(*e, EntryState::kGone);
      }
    }
    closed_.erase(closed_.lower_bound({low.trainer, 0}), closed_.lower_bound({low.trainer, low.low}));
  }
}

// A peer that passes it on had the gradient, so what it names is counted.
void Ledger::on_hearsay(const Commit& message, TimePoint now) {
  for (const CommitItem& item : message.items) {
    if (item.path.empty() || item.path.front().session != options_.self) continue;
    const Entry* e = entries_.find(item.path.front().serial);
    if (e != nullptr && e->microbatch == item.microbatch && e->state == EntryState::kCounted)
      hearsay_.hear(e->name.serial, now);
  }
}

void Ledger::on_link_down(const Session& session, TimePoint now) {
  std::vector<EntrySerial> lost;
  for (auto& [serial, e] : entries_.all()) {
    for (auto& [lease, claim] : e.leases)
      if (claim.holder == session) claim.link_lost = true;
    if (e.state == EntryState::kArriving && e.transfer_from == session) lost.push_back(serial);
  }
  for (const EntrySerial serial : lost) inputs_lost(serial, BusyReason::kFailed);
  tick(now);  // tells the holders above about orphans
}

void Ledger::on_session_over(const Session& session) {
  std::vector<Lease> fallen;
  for (const auto& [serial, e] : entries_.all())
    for (const auto& [lease, claim] : e.leases)
      if (claim.holder == session) fallen.push_back(lease);
  for (const Lease& lease : fallen) drop_lease(lease, "session over");
  arrivals_.forget_holder(session);
}

void Ledger::tick(TimePoint now) {
  for (const EntrySerial serial : arrivals_.overdue(now)) {
    refuse_frames(*entries_.find(serial));
    inputs_lost(serial, BusyReason::kFailed);
  }
  std::vector<Lease> expired;
  for (const EntrySerial serial : entries_.active()) {
    Entry& e = *entries_.find(serial);
    if (e.leases.empty()) continue;
    bool orphan = e.kind == ForwardKind::kTrain;
    for (const auto& [lease, claim] : e.leases) {
      if (claim.expires <= now) expired.push_back(lease);
      if (!claim.link_lost && now - claim.renewed < options_.lease * 2 / 5) orphan = false;
    }
    if (orphan && !e.above.empty() && now - e.orphan_told >= options_.lease / 6) {
      e.orphan_told = now;
      const Waiting waiting{e.microbatch, e.name, e.above.back()};
      if (e.above.size() > 2) port_.send(e.above[e.above.size() - 2], waiting);
      port_.ask_trainer(waiting);  // what was decided, it alone knows
    }
  }
  for (const Lease& lease : expired) drop_lease(lease, "expired");
  const auto ask = [this](EntrySerial serial) {
    return port_.ask_trainer({entries_.find(serial)->microbatch, {options_.self, serial}, {}});
  };
  for (const EntrySerial serial : hearsay_.tick(now, ask))
    if (Entry* e = entries_.find(serial); e->leases.empty()) end(*e, "expired");
}

void Ledger::add_lease(Entry& e, const Session& from, const Lease& lease, const std::vector<Session>& above,
                       TimePoint now) {
  entries_.claim(e, lease, {from, now + options_.lease, now, false, false});
  e.above = above;
  e.orphan_told = {};
}

void Ledger::drop_lease(const Lease& lease, std::string_view cause) {
  Entry* const found = entries_.claimed(lease);
  if (found == nullptr) return;
  Entry& e = *found;
  entries_.unclaim(e, lease);
  if (e.leases.empty()) {
    if (!is_final(e.state) && !hearsay_.keeps(e.name.serial)) end(e, cause);
  } else if (e.state == EntryState::kArriving && e.key_lease == lease) {  // another claim's holder has the input too
    refuse_frames(e);
    if (!ask_key_frame(e)) inputs_lost(e.name.serial, BusyReason::kFailed);
  }
}

void Ledger::busy(const Session& to, const Lease& lease, BusyReason why, TransferId transfer) {
  if (transfer != 0) port_.refuse_frames(to, transfer);
  port_.send(to, Busy{lease, why, queue_ms()});
}

void Ledger::refuse_frames(const Entry& e) {
  const auto transfer = arrivals_.transfer_of(e.name.serial);
  if (!transfer) return;
  arrivals_.forget(e.name.serial);
  port_.refuse_frames(e.transfer_from, *transfer);
}

void Ledger::give_gradient(Entry& e, const Lease& lease) {
  Claim& claim = e.leases.at(lease);
  claim.sent = true;
  Gradient message;
  message.lease = lease;
  message.microbatch = e.microbatch;
  message.path = e.path;
  message.tags = e.tags;
  message.loss_sum = e.loss_sum;
  message.targets = e.targets;
  message.forward_us = e.forward_us;
  message.backward_us = e.backward_us;
  claim.link_lost = !port_.send_gradient(claim.holder, std::move(message), e.name.serial);
}

void Ledger::give_gradient_to_all(Entry& e) {
  std::vector<Lease> leases;
  for (const auto& [lease, claim] : e.leases) leases.push_back(lease);
  for (const Lease& lease : leases) give_gradient(e, lease);
}

void Ledger::close_microbatch(const MicrobatchId& microbatch) {
  if (Entry* e = entries_.find_live(microbatch); e != nullptr && !is_final(e->state)) end(*e, "closed");
  if (microbatch.serial >= low_of(microbatch.trainer)) closed_.insert(microbatch);
}

}  // namespace shoal
