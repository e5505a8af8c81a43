// Which peer a hop asks, how long it waits, and what it does when nothing comes.
#include <algorithm>
#include <utility>

#include "common/log.h"
#include "router/courier.h"

namespace shoal {

namespace {
constexpr std::string_view kLate = "deadline";

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

// What the timer was armed with, or what has been measured since, if that is longer; 0 = liveness only.
Duration patience_of(const Hop& hop, const HopRates& rates) {
  const Hop::Child& newest = hop.children.back();
  const auto kind = timed_kind(newest.phase);
  return kind ? std::max(hop.patience, rates.deadline(newest.session, *kind)) : Duration::zero();
}

// Why its timer fires now.
std::optional<std::string_view> overdue(const Hop& hop, const PeerHealth& health, const HopRates& rates,
                                        TimePoint now) {
  if (hop.children.empty()) return std::nullopt;
  if (health.silent(hop.children.back().session, hop.armed_listened, now)) return "silent";
  const Duration waited = health.listened(now) - hop.armed_listened;
  const bool late = hop.patience > Duration::zero() && waited >= hop.patience && waited >= patience_of(hop, rates);
  if (late) return kLate;
  return std::nullopt;
}
}  // namespace

void Courier::arm(Hop& hop, TimePoint now) {
  SHOAL_CHECK(!hop.children.empty());
  const Hop::Child& newest = hop.children.back();
  hop.armed = now;
  hop.armed_listened = health_.listened(now);
  hop.retry_at.reset();
  hop.full = false;
  hop.patience = Duration::zero();
  if (const auto kind = timed_kind(newest.phase)) hop.patience = rates_.deadline(newest.session, *kind);
}

Courier::Choice Courier::choose(Hop& hop, bool hinted, TimePoint now) {
  const auto is = [&](const Session& session, WhyNot why) { return health_.why_not(session, now, why) == why; };
  const KnownBase& base = hop.spec.base;
  std::vector<Candidate> candidates;
  Choice choice;
  bool one_is_busy = false;
  for (const Session& session : neighbours_.candidates(hop.spec.to, now)) {
    const auto why = health_.why_not(session, now, hinted ? WhyNot::kResting : WhyNot::kFull);
    choice.room |= why != WhyNot::kFull;
    if (hop.child_of(session) != nullptr) continue;
    const auto it = hop.tried.find(session);
    const Hop::Tried tried = it == hop.tried.end() ? Hop::Tried{} : it->second;
    if (tried.stranded_until > now && is(session, WhyNot::kStranded)) continue;
    const bool would_not = tried.not_before > now;
    if (would_not || why == WhyNot::kFull) {
      choice.full |= !would_not;
      one_is_busy |= !is(session, WhyNot::kResting);
      continue;
    }
    const bool known = base.has(session);
    const std::uint64_t bytes = known ? base.frame_bytes : hop.spec.frame_bytes;
    Candidate& candidate = candidates.emplace_back();
    candidate = {session,
                 rates_.weight(session, now),
                 rates_.expected_seconds(session, bytes, now),
                 rates_.in_flight(session),
                 why.has_value(),
                 why == WhyNot::kResting,
                 known};
    candidate.hop_seconds = rates_.hop_seconds(session);
    candidate.compute_seconds = rates_.compute_seconds(session, now);
    candidate.transfer_seconds = rates_.transfer_seconds(session, bytes);
    candidate.rtt_seconds = rates_.rtt_seconds(session);
  }
  // To wait for a busy peer is shorter than to wait for a silent one.
  if (one_is_busy) std::erase_if(candidates, [](const Candidate& c) { return c.resting; });
  choice.peer = policy_->pick(hop.spec.sample, candidates);
  return choice;
}

Courier::Choice Courier::ask(Hop& hop, TimePoint now) {
  hop.retry_at.reset();
  const Choice choice = choose(hop, false, now);
  hop.full = choice.full && !choice.peer;
  if (choice.peer) {
    hops_.make_room(hop, kChildrenMax);
    ask_peer(hop, *choice.peer, std::nullopt, now);
    return choice;
  }
  hop.retry_later(now);
  if (hop.children.empty() && neighbours_.candidates(hop.spec.to, now).empty()) hops_.set_parked(hop, true);
  return choice;
}

void Courier::ask_peer(Hop& hop, const Session& peer, const std::optional<GradientHint>& hint, TimePoint now) {
  const bool takes =
      hint && hint->session == peer;  // the gradient waits at the very peer we ask: no activation travels
  if (hop.asked++ > 0) ++counters_.branches;
  Hop::Child& child = hops_.claim(hop, peer, takes, now);
  const Lease lease = child.lease;
  child.predicted =
      rates_.predicted_seconds(peer, hop.spec.base.has(peer) ? hop.spec.base.frame_bytes : hop.spec.frame_bytes, now);
  health_.asked(peer, now, rates_.in_flight(peer) > 0);
  rates_.sent(peer);
  hops_.set_parked(hop, false);
  const MicrobatchId id = hop.spec.microbatch;
  if (takes) {
    owner_.write(claim_event(EventKind::kTake, id, peer, lease));
    neighbours_.send(peer, Take{id, lease, hint->entry_name, hop.spec.above});
    arm(hop, now);
    return;
  }
  arm(hop, now);
  owner_.write(claim_event(EventKind::kForwardSent, id, peer, lease, hint ? "hint" : ""));
  const auto transfer = send_forward(hop, lease, peer, hint, false);
  Hop* const left = hops_.find(id);
  if (left == nullptr) return;
  if (!transfer.ok()) {  // no link to be had or its queue is full: as if it had said Busy
    left->tried[peer].not_before = now + kUnsentFor;
    hops_.drop_child(*left, lease, HopBook::Drop::kUnsaid);
    if (!left->children.empty()) arm(*left, now);
    return left->retry_later(now);
  }
  if (Hop::Child* sent = left->child_of(lease)) hops_.frames_sent(id, *sent, *transfer);
  left->backoff.reset();
}

Result<TransferId> Courier::send_forward(const Hop& hop, const Lease& lease, const Session& to,
                                         const std::optional<GradientHint>& hint, bool key) {
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
  message.hint = hint;
  auto frames = owner_.frames_of(to, message, key);
  return neighbours_.send_to(to, std::move(message), std::move(frames));
}

void Courier::on_need_key_frame(const Session& from, const NeedKeyFrame& message, TimePoint now) {
  Hop* hop = hops_.find(message.lease, from);
  if (hop == nullptr) return hops_.release(from, message.lease);
  Hop::Child* child = hop->child_of(message.lease);
  note_answer(*hop, *child, now);
  if (hop->won || hop->committed || child->key_asked) return;
  child->key_asked = true;
  // The entry that it had joined lost its feeder: it waits for us now.
  if (child->phase != HopPhase::kForward) enter(*hop, *child, HopPhase::kForward, now);
  const MicrobatchId id = hop->spec.microbatch;
  owner_.write(claim_event(EventKind::kKeyFrame, id, from, message.lease));
  const auto transfer = send_forward(*hop, message.lease, from, {}, true);
  hop = hops_.find(message.lease, from);  // sending may have ended it
  if (hop == nullptr) return;
  if (transfer.ok()) return hops_.frames_sent(id, *hop->child_of(message.lease), *transfer);
  hop->tried[from].not_before = now + kUnsentFor;
  hops_.release(from, message.lease);
  lose_child(*hop, message.lease, now);
}

void Courier::on_forged_path(const Session& from, const MicrobatchId& microbatch, TimePoint now) {
  const bool rests = health_.why_not(from, now, WhyNot::kUnfit) == WhyNot::kUnfit;
  if (!rests && neighbours_.is_last(from, now)) {
    if (const auto times = said_.due(short_name(from) + "forged", now))
      log_warning("session ", short_name(from), " names others' entries as its own, and no other peer of stage ",
                  *options_.ahead, " can be asked: it does not rest. HINT: one more replica there",
                  LogThrottle::text_of(*times));
  } else if (!rests) {
    Backoff rest = kPeerRest;
    if (forgers_.size() < kForgersMax || forgers_.contains(from.peer_tag))
      rest = forgers_.try_emplace(from.peer_tag, rest).first->second;
    const Duration time = rest.next();
    if (const auto known = forgers_.find(from.peer_tag); known != forgers_.end()) known->second = rest;
    neighbours_.unfit(from, now + time);
    if (const auto times = said_.due(short_name(from) + "forged", now))
      log_warning("session ", short_name(from), " names others' entries as its own: it rests for ",
                  static_cast<int>(seconds_of(time)), " s", LogThrottle::text_of(*times));
  }
  reject(microbatch, "its path does not begin with an entry of its own", now);
}

void Courier::fire(Hop& hop, std::string_view cause, TimePoint now) {
  Hop::Child& newest = hop.children.back();
  newest.overdue = true;
  const auto ms = [](Duration d) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
  };
  owner_.write(claim_event(EventKind::kHopTimer, hop.spec.microbatch, newest.session, newest.lease,
                           std::string(cause) + " in " + std::string(kind_of(newest.phase)) + " after " +
                               ms(now - hop.armed) + " ms, deadline " + ms(patience_of(hop, rates_)) + " ms"));
  health_.missed(newest.session, now);
  arm(hop, now);
  ask(hop, now);  // without another one the hop keeps the child, and looks again soon
}

void Courier::note_reached(TimePoint now) {
  answered_ = now;
  stranded_ = false;
}

void Courier::note_answer(Hop& hop, Hop::Child& child, TimePoint now) {
  if (!std::exchange(child.answered, true)) neighbours_.observe(child.session, HopKind::kAnswer, now - child.since);
  hop.answered = now;
  note_reached(now);
}

void Courier::note_accepted(Hop& hop, Hop::Child& child, TimePoint now) {
  if (!child.answered) health_.accepted(child.session, child.asked, now);
  note_answer(hop, child, now);
}

void Courier::enter(Hop& hop, Hop::Child& child, HopPhase phase, TimePoint now) {
  if (timed_kind(child.phase)) child.took += now - child.since;
  child.phase = phase;
  child.since = now;
  child.overdue = phase == HopPhase::kStranded;
  const bool newest = &child == &hop.children.back();
  if (!child.overdue) {
    if (newest) arm(hop, now);
    return;
  }
  health_.strand(child.session, now);
  Hop::Tried& tried = hop.tried[child.session];
  tried.stranded_until = now + tried.rest.next(now - child.asked);
  if (newest) fire(hop, "stranded", now);
}

// `away`: this process stood still and heard nobody.
void Courier::look_for_stranded(TimePoint now, bool away) {
  std::optional<Duration> patience;  // looked up when a hop needs it
  for (const MicrobatchId& id : hops_.active()) {
    ++counters_.looked_at;
    Hop& hop = hops_.at(id);
    if (hop.won) continue;
    // Parked: there was no peer that could have answered. Full: their refusals are the answer.
    if (away || hop.parked || hop.full) hop.answered = now;
    bool unanswered = now - hop.answered > HopRates::kDeadlineMin;
    if (unanswered) {
      if (!patience) patience = rates_.deadline({}, HopKind::kAnswer);
      unanswered = now - hop.answered > *patience;
    }
    const bool was = hop.stranded;
    hop.stranded = (unanswered || stranded_) && !neighbours_.candidates(hop.spec.to, now).empty();
    counters_.stranded += hop.stranded && !was;
    if (hop.stranded && unanswered && now - answered_ > *patience) stranded_ = true;
  }
}

void Courier::tick(TimePoint now, const std::vector<Low>& lows) {
  const bool away = health_.tick(now);
  if (options_.ahead && !hops_.active().empty()) neighbours_.measure(*options_.ahead, now);
  std::vector<MicrobatchId> due;
  std::optional<bool> news;  // of room, looked up when a hop waits for it
  for (const MicrobatchId& id : hops_.active()) {
    ++counters_.looked_at;
    const Hop& hop = hops_.at(id);
    if (hop.won) continue;
    if (hop.full && !news) news = health_.take_news(now);
    if ((hop.retry_at && *hop.retry_at <= now) || (hop.full && *news) || overdue(hop, health_, rates_, now))
      due.push_back(id);
  }
  bool room = true;  // for a hop that waits for nothing else
  for (const MicrobatchId& id : due) {
    Hop* const hop = hops_.find(id);
    if (hop == nullptr || hop->won) continue;
    if (const auto cause = overdue(*hop, health_, rates_, now)) {
      Hop::Child& newest = hop->children.back();
      if (*cause == kLate && neighbours_.leaves(newest.session, newest.transfer, newest.ahead)) {
        arm(*hop, now);
        continue;
      }
      fire(*hop, *cause, now);
    } else if (room || !hop->full) {
      room = ask(*hop, now).room;
    }
  }
  look_for_stranded(now, away);
  for (const Low& low : lows) hops_.forget_below(low);
  if (now >= next_renewal_) {
    next_renewal_ = now + options_.lease / 6;
    renew(lows);
  }
}

void Courier::renew(const std::vector<Low>& lows) {
  auto renewed = hops_.renewals();
  if (!lows.empty())
    for (const StageMembers& stage : neighbours_.roster().list().stages)
      for (const Member& member : stage.members) renewed.try_emplace(member.session);
  for (auto& [session, leases] : renewed) neighbours_.send(session, Renew{std::move(leases), lows});
}

}  // namespace shoal
