// What comes in, and the claims themselves. Which peers a hop asks and when: courier_ask.cc.
#include "router/courier.h"

#include <algorithm>
#include <utility>

#include "common/log.h"

namespace shoal {

namespace {
// A child goes on, and between below and stranded to and fro.
bool is_news(HopPhase known, HopPhase told) {
  const auto place = [](HopPhase phase) {
    return phase == HopPhase::kForward ? 0 : phase == HopPhase::kBackward ? 2 : 1;
  };
  return place(told) > place(known) || (place(told) == place(known) && told != known);
}
}  // namespace

Courier::Courier(HopOwner& owner, Neighbours& neighbours, CourierOptions options, std::unique_ptr<RoutingPolicy> policy)
    : owner_(owner),
      neighbours_(neighbours),
      health_(neighbours.health()),
      rates_(neighbours.rates()),
      options_(options),
      policy_(std::move(policy)),
      hops_(owner, neighbours) {}

// ---- hops ----

void Courier::open(HopSpec spec, TimePoint now) {
  Hop& hop = hops_.open(std::move(spec), now);
  if (hop.spec.hint) {
    const GradientHint hint = *hop.spec.hint;
    take(hop.spec.microbatch, hint, now);
  } else {
    ask(hop, now);
  }
}

void Courier::take(const MicrobatchId& microbatch, const GradientHint& hint, TimePoint now) {
  Hop* const hop = hops_.find(microbatch);
  if (hop == nullptr || hop->won) return;
  if (hop->child_of(hint.session) != nullptr) return;  // a claim there stands already
  hops_.make_room(*hop, kChildrenMax + 1);
  ask_peer(*hop, hint.session, hint, now);
}

void Courier::reject(const MicrobatchId& microbatch, const std::string& why, TimePoint now, Fault fault) {
  if (hops_.find(microbatch) == nullptr || hops_.waiting(microbatch)) return;
  Hop& hop = hops_.at(microbatch);
  const Session bad = hop.won_session;
  const Lease lease = *hop.won;
  owner_.write(claim_event(EventKind::kGradientRejected, microbatch, bad, lease, why));
  if (const auto times = said_.due(short_name(bad) + why, now))
    log_warning("stage ", hop.spec.to, ": the gradient of session ", short_name(bad), " is refused: ", why,
                LogThrottle::text_of(*times));
  if (fault == Fault::kSenders) health_.missed(bad, now);
  hop.tried[bad].not_before = now + kRejectedFor;
  hops_.drop_child(hop, lease, HopBook::Drop::kReleased);
  hop.won.reset();
  hop.below.clear();
  ask(hop, now);
}

// ---- what comes in ----

bool Courier::on_message(const Remote& from, const Message& message, TransferId transfer, TimePoint now) {
  const Session& session = from.session;
  note_heard(session, now);
  if (const auto* m = std::get_if<Gradient>(&message))
    on_gradient_header(from, *m, transfer, now);
  else if (const auto* m = std::get_if<Busy>(&message))
    on_busy(session, *m, now);
  else if (const auto* m = std::get_if<Have>(&message))
    on_have(session, *m, now);
  else if (const auto* m = std::get_if<Gone>(&message))
    on_gone(session, *m, now);
  else if (const auto* m = std::get_if<NeedKeyFrame>(&message))
    on_need_key_frame(session, *m, now);
  else if (const auto* m = std::get_if<Progress>(&message))
    on_progress(session, *m, now);
  else if (const auto* m = std::get_if<Waiting>(&message))
    on_waiting(session, *m, now);
  else
    return false;
  return true;
}

bool Courier::on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames, TimePoint now) {
  note_heard(from.session, now);
  const auto it = gradients_.find({from.peer, transfer});
  if (it == gradients_.end()) return false;
  const Gradient message = std::move(it->second.header);
  if (frames.ok()) rates_.observe_back(from.session, now - it->second.came);
  gradients_.erase(it);
  if (frames.ok())
    on_gradient(from.session, message, std::move(*frames), now);
  else
    on_gone(from.session, Gone{message.lease}, now);
  return true;
}

void Courier::note_heard(const Session& from, TimePoint now) { health_.heard(from, now, rates_.in_flight(from) > 0); }

void Courier::on_busy(const Session& from, const Busy& message, TimePoint now) {
  Hop* hop = hops_.find(message.lease, from);
  if (hop == nullptr || hop->won) return;
  ++counters_.busy;
  Hop::Child* child = hop->child_of(message.lease);
  const TimePoint answered = hop->answered;
  note_answer(*hop, *child, now);
  // What nobody can use is stranded here in the end: another replica of ours is asked for it.
  if (message.reason == BusyReason::kFailed || message.reason == BusyReason::kMalformed) hop->answered = answered;
  if (child->transfer != 0) neighbours_.drop(from, child->transfer);
  rates_.report_queue(from, std::chrono::milliseconds(message.queue_ms), now);
  if (message.reason == BusyReason::kNoCredit) {
    hops_.give_back(*child);
    health_.refused(from, child->asked, now);
  } else {
    hop->tried[from].not_before = now + (message.reason == BusyReason::kCrowded ? kCrowdedFor : kUnfitFor);
  }
  lose_child(*hop, message.lease, now);
}

void Courier::on_have(const Session& from, const Have& message, TimePoint now) {
  Hop* hop = hops_.find(message.lease, from);
  if (hop == nullptr || hop->won) return;
  Hop::Child* child = hop->child_of(message.lease);
  note_accepted(*hop, *child, now);
  if (child->transfer != 0) neighbours_.drop(from, child->transfer);
  child->transfer = 0;
  hops_.end_branch(hop->spec.microbatch, *child, BranchEnd::kAborted);
  enter(*hop, *child, HopPhase::kBelow, now);
}

void Courier::on_gone(const Session& from, const Gone& message, TimePoint now) {
  Hop* hop = hops_.find(message.lease, from);
  if (hop == nullptr || hop->won) return;  // won: what is counted below may be lost; Commit will find out
  note_answer(*hop, *hop->child_of(message.lease), now);
  lose_child(*hop, message.lease, now);
}

void Courier::on_gradient_header(const Remote& from, const Gradient& message, TransferId transfer, TimePoint now) {
  Hop* hop = hops_.find(message.lease, from.session);
  if (hop == nullptr) hops_.release(from.session, message.lease);
  if (hop == nullptr || hop->won) {
    if (transfer != 0) neighbours_.refuse(from, transfer);
    return;
  }
  Hop::Child* child = hop->child_of(message.lease);
  note_accepted(*hop, *child, now);
  if (child->phase != HopPhase::kBackward) enter(*hop, *child, HopPhase::kBackward, now);
  if (transfer == 0)
    on_gradient(from.session, message, {}, now);
  else
    gradients_[{from.peer, transfer}] = {message, now};
}

void Courier::on_gradient(const Session& from, const Gradient& message, std::vector<Bytes> frames, TimePoint now) {
  Hop* hop = hops_.find(message.lease, from);
  if (hop == nullptr) return hops_.release(from, message.lease);
  if (hop->won) return;  // a repeat
  Hop::Child* child = hop->child_of(message.lease);
  if (hop->spec.kind == ForwardKind::kTrain) {  // what has no backward tells nothing of the time of what has one
    if (child->phase == HopPhase::kBackward) neighbours_.observe(from, HopKind::kBackward, now - child->since);
    if (!child->take) rates_.finished(from, child->took + (now - child->since), child->predicted, now);
    rates_.report(from, std::chrono::microseconds(message.forward_us), std::chrono::microseconds(message.backward_us),
                  now);
  }
  health_.rejoined(from);
  hop->won = message.lease;
  hop->won_session = from;
  hop->below = message.path;
  const MicrobatchId id = hop->spec.microbatch;
  std::vector<Lease> losers;
  for (const Hop::Child& other : hop->children)
    if (other.lease != message.lease) losers.push_back(other.lease);
  for (const Lease& lease : losers) hops_.drop_child(*hop, lease, HopBook::Drop::kReleased);
  rates_.ended(from);
  hops_.set_parked(*hop, false);
  const bool own = !message.path.empty() && message.path.front().session == from;
  if (hop->spec.kind == ForwardKind::kTrain && !own) return on_forged_path(from, id, now);
  owner_.on_won(id, message, std::move(frames));
}

void Courier::on_progress(const Session& from, const Progress& message, TimePoint now) {
  note_reached(now);
  for (const ProgressItem& item : message.items) {
    Hop* hop = hops_.find(item.lease, from);
    if (hop == nullptr) {
      hops_.release(from, item.lease);
      continue;
    }
    rates_.report_queue(from, std::chrono::milliseconds(message.queue_ms), now);
    rates_.report_working(from, message.job_ms > 0);
    Hop::Child* child = hop->child_of(item.lease);
    const TimePoint answered = hop->answered;
    note_accepted(*hop, *child, now);
    if (item.phase == HopPhase::kStranded) hop->answered = answered;  // of no use to this hop
    if (hop->won || !is_news(child->phase, item.phase)) continue;
    if (child->phase == HopPhase::kForward && !child->take)
      neighbours_.observe(from, HopKind::kForward, now - child->since);
    const bool rejoined = child->phase == HopPhase::kStranded || item.phase == HopPhase::kBackward;
    if (rejoined) health_.rejoined(from);
    if (item.phase != HopPhase::kStranded) health_.delivered(from);
    enter(*hop, *child, item.phase, now);
  }
}

void Courier::on_waiting(const Session& from, const Waiting& message, TimePoint now) {
  Hop* const found = hops_.find(message.microbatch);
  if (found == nullptr || found->won || !found->tried.contains(message.silent)) return;
  Hop& hop = *found;
  const GradientHint hint{from, message.entry_name};
  // A child younger than the silent one computes the stage again: tell it where the gradient waits.
  if (!hop.children.empty() && hop.children.back().session != message.silent) {
    neighbours_.send(hop.children.back().session, Hint{hop.children.back().lease, hint});
    return;
  }
  if (const Choice choice = choose(hop, true, now); choice.peer) {
    hops_.make_room(hop, kChildrenMax + 1);
    ask_peer(hop, *choice.peer, hint, now);
  }
  // Nobody to ask: the gradient is found again when a peer comes back and routes there, or its lease runs out.
}

void Courier::on_link_up(const Remote& remote, TimePoint now) {
  neighbours_.on_link_up(remote);
  if (options_.ahead && neighbours_.roster().stage_of(remote.session) == options_.ahead) note_reached(now);
  note_heard(remote.session, now);
}

Session Courier::on_link_down(const Remote& remote, TimePoint now) {
  std::erase_if(gradients_, [&](const auto& item) { return item.first.peer == remote.peer; });
  const Session session = neighbours_.on_link_down(remote, now);
  std::vector<MicrobatchId> hit;
  for (const MicrobatchId& id : hops_.active())
    if (const Hop& hop = hops_.at(id); !hop.won && !hop.children.empty() && hop.children.back().session == session)
      hit.push_back(id);
  for (const MicrobatchId& id : hit)
    if (Hop* const hop = hops_.find(id)) fire(*hop, "link_down", now);
  return session;
}

Roster::Change Courier::on_members(const MemberList& list, TimePoint now) {
  Roster::Change change = neighbours_.on_members(list, now);
  for (const Session& session : change.over) on_session_over(session, now);
  return change;
}

void Courier::on_session_over(const Session& session, TimePoint now) {
  std::vector<MicrobatchId> hit;
  for (const MicrobatchId& id : hops_.active())
    if (Hop& hop = hops_.at(id); !hop.won && hop.child_of(session) != nullptr) hit.push_back(id);
  for (const MicrobatchId& id : hit) {
    Hop* const hop = hops_.find(id);
    if (hop == nullptr) continue;
    if (const Hop::Child* child = hop->child_of(session)) lose_child(*hop, Lease(child->lease), now);
  }
  neighbours_.forget(session);
}

void Courier::lose_child(Hop& hop, const Lease& lease, TimePoint now) {
  const bool newest = !hop.children.empty() && hop.children.back().lease == lease;
  hops_.drop_child(hop, lease, HopBook::Drop::kUnsaid);
  if (hop.children.empty()) {
    ask(hop, now);
    return;
  }
  if (!newest) return;
  arm(hop, now);  // the timer is the hop's: it waits for the children that it still has
  if (hop.children.back().overdue) hop.retry_later(now);
}

}  // namespace shoal
