// Whom a hop asks, how long it waits, and what it does when nothing comes.
#include <algorithm>

#include "router/courier.h"

namespace shoal {

void Courier::arm(Hop& hop, TimePoint now) {
  SHOAL_CHECK(!hop.children.empty());
  const Child& newest = hop.children.back();
  hop.armed = now;
  hop.retry_at.reset();
  switch (newest.phase) {
    case HopPhase::kForward:
      hop.patience = rates_.deadline(newest.session, HopKind::kForward);
      break;
    case HopPhase::kBelow:
      hop.patience = Duration::zero();
      break;
    case HopPhase::kBackward:
      hop.patience = rates_.deadline(newest.session, HopKind::kBackward);
      break;
  }
}

std::optional<Session> Courier::choose(const Hop& hop, TimePoint now) const {
  std::vector<Candidate> candidates;
  for (const Session& session : port_.candidates(hop.spec.to)) {
    if (std::any_of(hop.children.begin(), hop.children.end(), [&](const Child& c) { return c.session == session; }))
      continue;
    if (const auto it = hop.avoid.find(session); it != hop.avoid.end() && it->second > now) continue;
    candidates.push_back({session, rates_.weight(session), rates_.expected_seconds(session, hop.spec.frame_bytes, now),
                          rates_.in_flight(session), rates_.suspected(session)});
  }
  return policy_.pick(hop.spec.sample, candidates);
}

void Courier::ask(Hop& hop, TimePoint now) {
  hop.retry_at.reset();
  if (const auto peer = choose(hop, now)) {
    make_room(hop, kChildrenMax);
    ask_peer(hop, *peer, std::nullopt, now);
    return;
  }
  retry_later(hop, now);
  if (hop.children.empty() && port_.candidates(hop.spec.to).empty()) set_parked(hop, true);
}

void Courier::ask_peer(Hop& hop, const Session& peer, const std::optional<GradientHint>& hint, TimePoint now) {
  const Lease lease{self_, next_lease_++};
  const bool takes =
      hint && hint->session == peer;  // the gradient waits at the very peer we ask: no activation travels
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
  message.budget_ms =
      static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(hop.patience).count());
  port_.event("forward_sent", id, peer, lease, hint ? "hint" : "");
  const auto transfer = port_.send_forward(peer, std::move(message));
  const auto it = hops_.find(id);
  if (it == hops_.end()) return;
  if (!transfer.ok()) {  // no link to be had or its queue is full: as if it had said Busy
    it->second.avoid[peer] = now + 200ms;
    drop_child(it->second, lease, std::nullopt);
    if (!it->second.children.empty()) arm(it->second, now);
    retry_later(it->second, now);
    return;
  }
  if (Child* child = child_of(it->second, lease)) child->transfer = *transfer;
  it->second.backoff = kBackoffMin;
}

void Courier::retry_later(Hop& hop, TimePoint now) {
  hop.retry_at = now + hop.backoff;
  hop.backoff = std::min(hop.backoff * 2, kBackoffMax);
}

void Courier::fire(Hop& hop, std::string_view cause, TimePoint now) {
  ++counters_.timers;
  Child& newest = hop.children.back();
  newest.overdue = true;
  const auto ms = [](Duration d) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
  };
  port_.event("hop_timer", hop.spec.microbatch, newest.session, newest.lease,
              std::string(cause) + " after " + ms(now - hop.armed) + " ms, deadline " + ms(hop.patience) + " ms");
  rates_.miss(newest.session, now);
  arm(hop, now);
  ask(hop, now);  // nobody else: we keep whom we have, and look again soon
}

void Courier::tick(TimePoint now) {
  std::vector<MicrobatchId> due;
  for (auto& [id, hop] : hops_) {
    if (hop.won || hop.committed) continue;
    if ((hop.retry_at && *hop.retry_at <= now) || overdue(hop, now)) due.push_back(id);
  }
  for (const MicrobatchId& id : due) {
    const auto it = hops_.find(id);
    if (it == hops_.end() || it->second.won) continue;
    if (!overdue(it->second, now)) {
      ask(it->second, now);
    } else {
      const bool silence = silent(it->second.children.back().session, it->second.armed, now);
      fire(it->second, silence ? "silent" : "deadline", now);
    }
  }
}

bool Courier::silent(const Session& session, TimePoint since, TimePoint now) const {
  const auto it = heard_.find(session);
  const TimePoint last = it == heard_.end() ? since : std::max(since, it->second);
  return now - last > kSilence;
}

bool Courier::overdue(const Hop& hop, TimePoint now) const {
  if (hop.children.empty()) return false;
  return (hop.patience > Duration::zero() && hop.armed + hop.patience <= now) ||
         silent(hop.children.back().session, hop.armed, now);
}

}  // namespace shoal
