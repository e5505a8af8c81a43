#include "router/courier.h"

#include <algorithm>

namespace shoal {

Courier::Courier(CourierPort& port, const RoutingPolicy& policy, HopRates& rates, Session self)
    : port_(port), policy_(policy), rates_(rates), self_(self) {}

void Courier::open(HopSpec spec, TimePoint now) {
  const MicrobatchId id = spec.microbatch;
  SHOAL_CHECK(!hops_.contains(id));
  Hop& hop = hops_[id];
  hop.spec = std::move(spec);
  if (hop.spec.hint) {
    const GradientHint hint = *hop.spec.hint;
    take(id, hint, now);
  } else {
    ask(hop, now);
  }
}

bool Courier::waiting(const MicrobatchId& microbatch) const {
  const auto it = hops_.find(microbatch);
  return it != hops_.end() && !it->second.won;
}

void Courier::close(const MicrobatchId& microbatch, ReleaseWhy why) {
  const auto it = hops_.find(microbatch);
  if (it == hops_.end()) return;
  set_parked(it->second, false);
  while (!it->second.children.empty()) drop_child(it->second, it->second.children.back().lease, why);
  hops_.erase(it);
}

void Courier::commit(const MicrobatchId& microbatch) {
  const auto it = hops_.find(microbatch);
  if (it == hops_.end() || it->second.committed) return;
  Hop& hop = it->second;
  hop.committed = true;
  if (hop.won && !hop.below.empty()) {
    Commit message;
    message.items.push_back({microbatch, hop.below});
    port_.send(hop.won_session, std::move(message));
  }
}

void Courier::forget(const MicrobatchId& microbatch) {
  const auto it = hops_.find(microbatch);
  if (it == hops_.end()) return;
  while (!it->second.children.empty()) drop_child(it->second, it->second.children.back().lease, std::nullopt);
  hops_.erase(it);
}

void Courier::take(const MicrobatchId& microbatch, const GradientHint& hint, TimePoint now) {
  const auto it = hops_.find(microbatch);
  if (it == hops_.end() || it->second.won) return;
  Hop& hop = it->second;
  for (const Child& child : hop.children)
    if (child.session == hint.session) return;  // a claim there stands already
  ++counters_.repoints;
  ask_peer(hop, hint.session, hint, now);
}

void Courier::reject(const MicrobatchId& microbatch, const std::string& why, TimePoint now) {
  const auto it = hops_.find(microbatch);
  if (it == hops_.end() || !it->second.won) return;
  Hop& hop = it->second;
  const Session bad = hop.won_session;
  const Lease lease = *hop.won;
  port_.event("gradient_rejected", microbatch, bad, lease, why);
  rates_.miss(bad, now);
  hop.avoid[bad] = now + 5s;
  drop_child(hop, lease, ReleaseWhy::kLost);
  hop.won.reset();
  hop.below.clear();
  ask(hop, now);
}

void Courier::on_busy(const Session& from, const Busy& message, TimePoint now) {
  Hop* hop = find(message.lease, from);
  if (hop == nullptr || hop->won) return;
  ++counters_.busy;
  if (Child* child = child_of(*hop, message.lease); child != nullptr && child->transfer != 0)
    port_.drop_transfer(from, child->transfer);
  rates_.report(from, {}, {}, std::chrono::milliseconds(message.queue_ms));
  hop->avoid[from] = now + (message.reason == BusyReason::kNoCredit ? Duration(50ms) : Duration(500ms));
  drop_child(*hop, message.lease, std::nullopt);
  if (hop->children.empty()) {
    ask(*hop, now);
  }  // else the hop timer stays armed
}

void Courier::on_have(const Session& from, const Have& message, TimePoint now) {
  Hop* hop = find(message.lease, from);
  if (hop == nullptr || hop->won) return;
  Child* child = child_of(*hop, message.lease);
  if (child->transfer != 0) port_.drop_transfer(from, child->transfer);
  child->transfer = 0;
  child->phase = HopPhase::kBelow;
  child->since = now;
  if (child == &hop->children.back()) arm(*hop, now);
}

void Courier::on_gone(const Session& from, const Gone& message, TimePoint now) {
  Hop* hop = find(message.lease, from);
  if (hop == nullptr || hop->won) return;  // won: what is counted below may be lost; Commit will find out
  ++counters_.gone;
  drop_child(*hop, message.lease, std::nullopt);
  if (hop->children.empty()) ask(*hop, now);
}

bool Courier::wants(const Session& from, const Gradient& message, TimePoint now) {
  Hop* hop = find(message.lease, from);
  if (hop == nullptr) {
    ++counters_.late;
    port_.send(from, Release{message.lease, ReleaseWhy::kLate});
    return false;
  }
  if (hop->won) return false;
  Child* child = child_of(*hop, message.lease);
  if (child->phase != HopPhase::kBackward) {
    child->phase = HopPhase::kBackward;
    child->since = now;
    if (child == &hop->children.back()) arm(*hop, now);
  }
  return true;
}

void Courier::on_gradient(const Session& from, const Gradient& message, std::vector<Bytes> frames, TimePoint now) {
  Hop* hop = find(message.lease, from);
  if (hop == nullptr) {
    ++counters_.late;
    port_.send(from, Release{message.lease, ReleaseWhy::kLate});
    return;
  }
  if (hop->won) return;  // a repeat
  Child* child = child_of(*hop, message.lease);
  if (child->phase == HopPhase::kBackward) rates_.observe(from, HopKind::kBackward, now - child->since);
  rates_.report(from, std::chrono::microseconds(message.forward_us), std::chrono::microseconds(message.backward_us),
                std::chrono::microseconds(message.queue_us));
  rates_.delivered(from);
  hop->won = message.lease;
  hop->won_session = from;
  hop->below = message.path;
  const MicrobatchId id = hop->spec.microbatch;
  std::vector<Lease> losers;
  for (const Child& other : hop->children)
    if (other.lease != message.lease) losers.push_back(other.lease);
  for (const Lease& lease : losers) drop_child(*hop, lease, ReleaseWhy::kLost);
  rates_.ended(from);
  set_parked(*hop, false);
  port_.on_won(id, message, std::move(frames));
}

void Courier::on_progress(const Session& from, const Progress& message, TimePoint now) {
  for (const ProgressItem& item : message.items) {
    Hop* hop = find(item.lease, from);
    if (hop == nullptr) {
      port_.send(from, Release{item.lease, ReleaseWhy::kLate});
      continue;
    }
    Child* child = child_of(*hop, item.lease);
    if (hop->won || child->phase >= item.phase) continue;
    if (child->phase == HopPhase::kForward && !child->take) rates_.observe(from, HopKind::kForward, now - child->since);
    child->phase = item.phase;
    child->since = now;
    rates_.delivered(from);
    if (child == &hop->children.back()) arm(*hop, now);
  }
}

void Courier::on_waiting(const Session& from, const Waiting& message, TimePoint now) {
  const auto it = hops_.find(message.microbatch);
  if (it == hops_.end() || it->second.won || !it->second.ever.contains(message.silent)) return;
  Hop& hop = it->second;
  const GradientHint hint{from, message.token};
  // The youngest child that is not the silent one computes the stage again: tell it where the gradient waits.
  for (auto child = hop.children.rbegin(); child != hop.children.rend(); ++child) {
    if (child->session == message.silent) break;
    port_.send(child->session, Hint{child->lease, hint});
    return;
  }
  if (const auto peer = choose(hop, now)) ask_peer(hop, *peer, hint, now);
  // Nobody to ask: the gradient is found again when a peer comes back and routes there, or its lease runs out.
}

void Courier::on_link_down(const Session& session, TimePoint now) {
  std::vector<MicrobatchId> hit;
  for (auto& [id, hop] : hops_)
    if (!hop.won && !hop.children.empty() && hop.children.back().session == session) hit.push_back(id);
  for (const MicrobatchId& id : hit)
    if (const auto it = hops_.find(id); it != hops_.end()) fire(it->second, "link_down", now);
}

void Courier::on_session_over(const Session& session, TimePoint now) {
  std::vector<MicrobatchId> hit;
  for (auto& [id, hop] : hops_)
    if (!hop.won && std::any_of(hop.children.begin(), hop.children.end(), [&](const Child& c) { return c.session == session; }))
      hit.push_back(id);
  for (const MicrobatchId& id : hit) {
    const auto it = hops_.find(id);
    if (it == hops_.end()) continue;
    std::vector<Lease> over;
    for (const Child& child : it->second.children)
      if (child.session == session) over.push_back(child.lease);
    for (const Lease& lease : over) drop_child(it->second, lease, std::nullopt);
    if (it->second.children.empty()) ask(it->second, now);
  }
  rates_.forget(session);
  heard_.erase(session);
}

void Courier::tick(TimePoint now) {
  std::vector<MicrobatchId> due;
  for (auto& [id, hop] : hops_) {
    if (hop.won || hop.committed) continue;
    if (hop.children.empty()) {
      if (hop.retry_at && *hop.retry_at <= now) due.push_back(id);
    } else if ((hop.patience > Duration::zero() && hop.armed + hop.patience <= now) ||
               silent(hop.children.back().session, hop.armed, now)) {
      due.push_back(id);
    }
  }
  for (const MicrobatchId& id : due) {
    const auto it = hops_.find(id);
    if (it == hops_.end() || it->second.won) continue;
    if (it->second.children.empty()) {
      ask(it->second, now);
    } else {
      const bool silence = silent(it->second.children.back().session, it->second.armed, now);
      fire(it->second, silence ? "silent" : "deadline", now);
    }
  }
}

std::map<Session, std::vector<Renewal>> Courier::renewals() const {
  std::map<Session, std::vector<Renewal>> result;
  for (const auto& [id, hop] : hops_) {
    if (hop.committed) continue;
    for (const Child& child : hop.children) result[child.session].push_back({child.lease, !hop.won.has_value()});
  }
  return result;
}

std::size_t Courier::parked() const {
  return static_cast<std::size_t>(std::count_if(hops_.begin(), hops_.end(), [](const auto& item) { return item.second.parked; }));
}

std::optional<Session> Courier::won_by(const MicrobatchId& microbatch) const {
  const auto it = hops_.find(microbatch);
  if (it == hops_.end() || !it->second.won) return std::nullopt;
  return it->second.won_session;
}

std::string Courier::describe(const MicrobatchId& microbatch) const {
  const auto it = hops_.find(microbatch);
  if (it == hops_.end()) return "not held";
  std::string text = it->second.won ? "won" : it->second.parked ? "parked" : "waiting for";
  for (const Child& child : it->second.children) text += " " + short_name(child.session);
  return text;
}

Courier::Hop* Courier::find(const Lease& lease, const Session& from) {
  const auto it = by_lease_.find(lease);
  if (it == by_lease_.end()) return nullptr;
  const auto hop = hops_.find(it->second);
  SHOAL_CHECK(hop != hops_.end());
  const Child* child = child_of(hop->second, lease);
  return child != nullptr && child->session == from ? &hop->second : nullptr;
}

Courier::Child* Courier::child_of(Hop& hop, const Lease& lease) {
  for (Child& child : hop.children)
    if (child.lease == lease) return &child;
  return nullptr;
}

void Courier::arm(Hop& hop, TimePoint now) {
  SHOAL_CHECK(!hop.children.empty());
  const Child& newest = hop.children.back();
  hop.armed = now;
  switch (newest.phase) {
    case HopPhase::kForward: hop.patience = rates_.deadline(newest.session, HopKind::kForward); break;
    case HopPhase::kBelow: hop.patience = Duration::zero(); break;
    case HopPhase::kBackward: hop.patience = rates_.deadline(newest.session, HopKind::kBackward); break;
  }
}

std::optional<Session> Courier::choose(const Hop& hop, TimePoint now) const {
  std::vector<Candidate> candidates;
  for (const Session& session : port_.candidates(hop.spec.to)) {
    if (std::any_of(hop.children.begin(), hop.children.end(), [&](const Child& c) { return c.session == session; })) continue;
    if (const auto it = hop.avoid.find(session); it != hop.avoid.end() && it->second > now) continue;
    candidates.push_back({session, rates_.weight(session), rates_.expected_seconds(session, hop.spec.frame_bytes),
                          rates_.in_flight(session), rates_.suspected(session)});
  }
  return policy_.pick(hop.spec.sample, candidates);
}

void Courier::ask(Hop& hop, TimePoint now) {
  hop.retry_at.reset();
  if (const auto peer = choose(hop, now)) {
    ask_peer(hop, *peer, std::nullopt, now);
    return;
  }
  if (!hop.children.empty()) {
    arm(hop, now);
    return;
  }
  hop.retry_at = now + hop.backoff;
  hop.backoff = std::min(hop.backoff * 2, kBackoffMax);
  if (port_.candidates(hop.spec.to).empty()) set_parked(hop, true);
}

void Courier::ask_peer(Hop& hop, const Session& peer, const std::optional<GradientHint>& hint, TimePoint now) {
  const Lease lease{self_, next_lease_++};
  const bool takes = hint && hint->session == peer;  // the gradient waits at the very peer we ask: no activation travels
  if (hop.asked++ > 0) ++counters_.branches;
  hop.children.push_back({lease, peer, 0, HopPhase::kForward, now, takes});
  hop.ever.insert(peer);
  by_lease_.emplace(lease, hop.spec.microbatch);
  heard_.try_emplace(peer, now);
  rates_.sent(peer);
  set_parked(hop, false);
  const MicrobatchId id = hop.spec.microbatch;
  if (takes) {
    port_.event("take", id, peer, lease, "");
    port_.send(peer, Take{id, lease, hint->token, hop.spec.above});
    arm(hop, now);
    return;
  }
  Forward message;
  message.microbatch = id;
  message.sample = hop.spec.sample;
  message.epoch = hop.spec.epoch;
  message.kind = hop.spec.kind;
  message.step = hop.spec.step;
  message.lease = lease;
  message.above = hop.spec.above;
  message.low = port_.low_of(id.trainer);
  message.hint = hint;
  message.stage = hop.spec.to;
  arm(hop, now);
  message.budget_ms = static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(hop.patience).count());
  port_.event("forward_sent", id, peer, lease, hint ? "hint" : "");
  const auto transfer = port_.send_forward(peer, std::move(message));
  const auto it = hops_.find(id);
  if (it == hops_.end()) return;
  if (!transfer.ok()) {  // no link to be had or its queue is full: as if it had said Busy
    it->second.avoid[peer] = now + 200ms;
    drop_child(it->second, lease, std::nullopt);
    if (it->second.children.empty() && !it->second.won) {
      it->second.retry_at = now + it->second.backoff;
      it->second.backoff = std::min(it->second.backoff * 2, kBackoffMax);
    }
    return;
  }
  if (Child* child = child_of(it->second, lease)) child->transfer = *transfer;
  it->second.backoff = kBackoffMin;
}

void Courier::fire(Hop& hop, std::string_view cause, TimePoint now) {
  ++counters_.timers;
  const Child& newest = hop.children.back();
  port_.event("hop_timer", hop.spec.microbatch, newest.session, newest.lease, cause);
  rates_.miss(newest.session, now);
  const auto peer = choose(hop, now);
  if (!peer) {  // nobody else: keep waiting for whom we have
    arm(hop, now);
    return;
  }
  if (hop.children.size() >= kChildrenMax) drop_child(hop, hop.children.front().lease, ReleaseWhy::kCrowded);
  ask_peer(hop, *peer, std::nullopt, now);
}

void Courier::drop_child(Hop& hop, const Lease& lease, std::optional<ReleaseWhy> release) {
  const auto it = std::find_if(hop.children.begin(), hop.children.end(), [&](const Child& c) { return c.lease == lease; });
  if (it == hop.children.end()) return;
  const Child child = *it;
  hop.children.erase(it);
  by_lease_.erase(lease);
  if (!(hop.won && *hop.won == lease)) rates_.ended(child.session);
  if (!release) return;
  if (child.transfer != 0) port_.drop_transfer(child.session, child.transfer);
  port_.send(child.session, Release{lease, *release});
}

void Courier::set_parked(Hop& hop, bool parked) {
  if (hop.parked == parked) return;
  hop.parked = parked;
  port_.on_parked(hop.spec.microbatch, hop.spec.to, parked);
}

bool Courier::silent(const Session& session, TimePoint since, TimePoint now) const {
  const auto it = heard_.find(session);
  const TimePoint last = it == heard_.end() ? since : std::max(since, it->second);
  return now - last > kSilence;
}

}  // namespace shoal
