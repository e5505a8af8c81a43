// Whom a hop asks, how long it waits, and what it does when nothing comes.
#include <algorithm>
#include <utility>

#include "router/courier.h"

namespace shoal {

namespace {
// The kind of a deadline, for hop_timer's cause.
std::string_view kind_of(HopPhase phase) {
  switch (phase) {
    case HopPhase::kForward:
      return "forward";
    case HopPhase::kBelow:
    case HopPhase::kStranded:
      return "below";
    case HopPhase::kBackward:
      return "backward";
  }
  return "?";
}

std::optional<HopKind> timed_kind(HopPhase phase) {
  if (phase == HopPhase::kBelow || phase == HopPhase::kStranded) return std::nullopt;  // it waits for a later stage
  return phase == HopPhase::kForward ? HopKind::kForward : HopKind::kBackward;
}
}  // namespace

void Courier::arm(Hop& hop, TimePoint now) {
  SHOAL_CHECK(!hop.children.empty());
  const Child& newest = hop.children.back();
  hop.armed = now;
  hop.armed_listened = listened(now);
  hop.retry_at.reset();
  hop.full = false;
  hop.patience = Duration::zero();
  if (const auto kind = timed_kind(newest.phase)) hop.patience = rates_.deadline(newest.session, *kind);
}

Duration Courier::patience_of(const Hop& hop) const {
  const Child& newest = hop.children.back();
  const auto kind = timed_kind(newest.phase);
  return kind ? std::max(hop.patience, rates_.deadline(newest.session, *kind)) : Duration::zero();
}

Courier::Choice Courier::choose(const Hop& hop, bool hinted, TimePoint now) const {
  std::vector<Candidate> candidates;
  Choice choice;
  bool one_is_busy = false;
  for (const Session& session : port_.candidates(hop.spec.to, now)) {
    const bool room = hinted || credits_.has_room(session, now);
    choice.room |= room;
    if (std::any_of(hop.children.begin(), hop.children.end(), [&](const Child& c) { return c.session == session; }))
      continue;
    if (const auto it = hop.was_stranded.find(session);
        it != hop.was_stranded.end() && it->second.until > now && rates_.stranded(session))
      continue;
    if (const auto it = hop.avoid.find(session); it != hop.avoid.end() && it->second > now) {
      one_is_busy |= !rates_.resting(session, now);
      continue;
    }
    if (!room) {
      choice.full = true;
      one_is_busy |= !rates_.resting(session, now);
      continue;
    }
    const KnownBase& base = hop.spec.base;
    const bool known = std::find(base.holders.begin(), base.holders.end(), session) != base.holders.end();
    const std::uint64_t bytes = known ? base.frame_bytes : hop.spec.frame_bytes;
    candidates.push_back({session, rates_.weight(session), rates_.expected_seconds(session, bytes, now),
                          rates_.in_flight(session), rates_.suspected(session), rates_.resting(session, now), known});
  }
  // To wait for who is busy is shorter than to wait for who is silent.
  if (one_is_busy) std::erase_if(candidates, [](const Candidate& c) { return c.resting; });
  choice.peer = policy_.pick(hop.spec.sample, candidates);
  return choice;
}

Courier::Choice Courier::ask(Hop& hop, TimePoint now) {
  hop.retry_at.reset();
  const Choice choice = choose(hop, false, now);
  hop.full = choice.full && !choice.peer;
  if (choice.peer) {
    make_room(hop, kChildrenMax);
    ask_peer(hop, *choice.peer, std::nullopt, now);
    return choice;
  }
  retry_later(hop, now);
  if (hop.children.empty() && port_.candidates(hop.spec.to, now).empty()) set_parked(hop, true);
  return choice;
}

void Courier::ask_peer(Hop& hop, const Session& peer, const std::optional<GradientHint>& hint, TimePoint now) {
  const Lease lease{self_, next_lease_++};
  const bool takes =
      hint && hint->session == peer;  // the gradient waits at the very peer we ask: no activation travels
  if (hop.asked++ > 0) ++counters_.branches;
  hop.children.push_back({lease, peer, 0, HopPhase::kForward, now, takes});
  hop.children.back().asked = now;
  hop.ever.insert(peer);
  by_lease_.emplace(lease, hop.spec.microbatch);
  if (rates_.in_flight(peer) == 0) heard_[peer].last = listened(now);  // no word of it was awaited
  rates_.sent(peer);
  credits_.asked(peer, now);
  set_parked(hop, false);
  const MicrobatchId id = hop.spec.microbatch;
  if (takes) {
    port_.write(claim_event(EventKind::kTake, id, peer, lease));
    port_.send(peer, Take{id, lease, hint->entry_name, hop.spec.above});
    arm(hop, now);
    return;
  }
  arm(hop, now);
  Forward message = forward_of(hop, lease);
  message.hint = hint;
  port_.write(claim_event(EventKind::kForwardSent, id, peer, lease, hint ? "hint" : ""));
  const auto transfer = port_.send_forward(peer, std::move(message), false);
  const auto it = hops_.find(id);
  if (it == hops_.end()) return;
  if (!transfer.ok()) {  // no link to be had or its queue is full: as if it had said Busy
    it->second.avoid[peer] = now + 200ms;
    drop_child(it->second, lease, std::nullopt);
    if (!it->second.children.empty()) arm(it->second, now);
    retry_later(it->second, now);
    return;
  }
  if (Child* child = child_of(it->second, lease)) frames_sent(id, *child, *transfer);
  it->second.backoff.reset();
}

Forward Courier::forward_of(const Hop& hop, const Lease& lease) {
  Forward message;
  message.microbatch = hop.spec.microbatch;
  message.sample = hop.spec.sample;
  message.epoch = hop.spec.epoch;
  message.kind = hop.spec.kind;
  message.versions = hop.spec.versions;
  message.step = hop.spec.step;
  message.lease = lease;
  message.above = hop.spec.above;
  message.stage = hop.spec.to;
  return message;
}

void Courier::frames_sent(const MicrobatchId& microbatch, Child& child, TransferId transfer) {
  child.transfer = transfer;
  if (!std::exchange(child.frames_out, true)) port_.on_branch(microbatch, child.session, child.lease, BranchEnd::kSent);
}

void Courier::on_need_key_frame(const Session& from, const NeedKeyFrame& message, TimePoint now) {
  Hop* hop = find(message.lease, from);
  if (hop == nullptr) {
    ++counters_.late;
    port_.send(from, Release{message.lease, ReleaseWhy::kLate});
    return;
  }
  Child* child = child_of(*hop, message.lease);
  note_answer(*hop, *child, now);
  if (hop->won || hop->committed || child->key_asked) return;
  child->key_asked = true;
  ++counters_.key_frames;
  if (child->phase != HopPhase::kForward) {  // it had joined an entry that lost who fed it: it waits for us now
    child->phase = HopPhase::kForward;
    child->since = now;
    child->overdue = false;
    if (child == &hop->children.back()) arm(*hop, now);
  }
  const MicrobatchId id = hop->spec.microbatch;
  port_.write(claim_event(EventKind::kKeyFrame, id, from, message.lease));
  const auto transfer = port_.send_forward(from, forward_of(*hop, message.lease), true);
  hop = find(message.lease, from);  // sending may have ended it
  if (hop == nullptr) return;
  if (transfer.ok()) return frames_sent(id, *child_of(*hop, message.lease), *transfer);
  hop->avoid[from] = now + 200ms;
  port_.send(from, Release{message.lease, ReleaseWhy::kLost});
  lose_child(*hop, message.lease, now);
}

void Courier::retry_later(Hop& hop, TimePoint now) { hop.retry_at = now + hop.backoff.next(); }

void Courier::fire(Hop& hop, std::string_view cause, TimePoint now) {
  ++counters_.timers;
  Child& newest = hop.children.back();
  newest.overdue = true;
  const auto ms = [](Duration d) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
  };
  port_.write(claim_event(EventKind::kHopTimer, hop.spec.microbatch, newest.session, newest.lease,
                          std::string(cause) + " in " + std::string(kind_of(newest.phase)) + " after " +
                              ms(now - hop.armed) + " ms, deadline " + ms(patience_of(hop)) + " ms"));
  rates_.miss(newest.session, now);
  arm(hop, now);
  ask(hop, now);  // nobody else: we keep whom we have, and look again soon
}

void Courier::on_reached(TimePoint now) {
  answered_ = now;
  stranded_ = false;
}

void Courier::note_answer(Hop& hop, Child& child, TimePoint now) {
  if (!std::exchange(child.answered, true)) rates_.observe(child.session, HopKind::kAnswer, now - child.since);
  hop.answered = now;
  on_reached(now);
}

void Courier::note_accepted(Hop& hop, Child& child, TimePoint now) {
  if (!child.answered) credits_.accepted(child.session, child.asked, now);
  note_answer(hop, child, now);
}

void Courier::note_stranded(Hop& hop, const Child& child, TimePoint now) {
  rates_.strand(child.session, now);
  WasStranded& was = hop.was_stranded[child.session];
  was.until = now + was.rest.next(now - child.asked);
}

// `away`: it was we who heard nobody.
void Courier::look_for_stranded(TimePoint now, bool away) {
  std::optional<Duration> patience;  // looked up when a hop needs it
  for (const MicrobatchId& id : active_) {
    ++counters_.looked_at;
    Hop& hop = hops_.at(id);
    if (hop.won) continue;
    // Parked: there was nobody who could have answered. Full: their refusals are the answer.
    if (away || hop.parked || hop.full) hop.answered = now;
    bool unanswered = now - hop.answered > HopRates::kDeadlineMin;
    if (unanswered) {
      if (!patience) patience = rates_.deadline({}, HopKind::kAnswer);
      unanswered = now - hop.answered > *patience;
    }
    const bool was = hop.stranded;
    hop.stranded = (unanswered || stranded_) && !port_.candidates(hop.spec.to, now).empty();
    counters_.stranded += hop.stranded && !was;
    if (hop.stranded && unanswered && now - answered_ > *patience) stranded_ = true;
  }
}

bool Courier::stranded(const MicrobatchId& microbatch) const {
  const auto it = hops_.find(microbatch);
  return it != hops_.end() && !it->second.won && it->second.stranded;
}

void Courier::tick(TimePoint now) {
  const bool away = now - ticked_ > kSilence;
  listened_ = listened(now);
  ticked_ = now;
  std::vector<MicrobatchId> due;
  std::optional<bool> news;  // of room, looked up when a hop waits for it
  for (const MicrobatchId& id : active_) {
    ++counters_.looked_at;
    const Hop& hop = hops_.at(id);
    if (hop.won) continue;
    if (hop.full && !news) news = credits_.take_news(now);
    if ((hop.retry_at && *hop.retry_at <= now) || (hop.full && *news) || overdue(hop, now)) due.push_back(id);
  }
  bool room = true;  // for who waits for nothing else
  for (const MicrobatchId& id : due) {
    const auto it = hops_.find(id);
    if (it == hops_.end() || it->second.won) continue;
    if (overdue(it->second, now)) {
      fire(it->second, silent(it->second, now) ? "silent" : "deadline", now);
    } else if (room || !it->second.full) {
      room = ask(it->second, now).room;
    }
  }
  look_for_stranded(now, away);
}

void Courier::on_heard(const Session& from, TimePoint now) {
  Heard& heard = heard_[from];
  const Duration pause = listened(now) - heard.last;
  heard.last += pause;
  if (rates_.in_flight(from) == 0 || pause > silence_of(heard)) return;
  heard.pause = std::max(pause, heard.pause - pause / kPauseFades);
}

bool Courier::silent(const Hop& hop, TimePoint now) const {
  const auto it = heard_.find(hop.children.back().session);
  const Heard heard = it == heard_.end() ? Heard{} : it->second;
  return listened(now) - std::max(heard.last, hop.armed_listened) > silence_of(heard);
}

bool Courier::overdue(const Hop& hop, TimePoint now) const {
  if (hop.children.empty()) return false;
  if (silent(hop, now)) return true;
  const Duration waited = listened(now) - hop.armed_listened;
  return hop.patience > Duration::zero() && waited >= hop.patience && waited >= patience_of(hop);
}

}  // namespace shoal
