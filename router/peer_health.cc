#include "router/peer_health.h"

#include <utility>

namespace shoal {

std::optional<WhyNot> PeerHealth::why_not(const Session& peer, TimePoint now, WhyNot from) const {
  const Record* p = find(peer);
  if (p == nullptr) return std::nullopt;
  const std::pair<WhyNot, bool> reasons[] = {
      {WhyNot::kDown, p->down_until > now}, {WhyNot::kUnfit, p->unfit_until > now},
      {WhyNot::kFull, p->full(now)},        {WhyNot::kResting, p->rests(now)},
      {WhyNot::kStranded, p->stranded},     {WhyNot::kSuspected, p->rest.begun()},
  };
  for (const auto& [why, holds] : reasons)
    if (holds && why >= from) return why;
  return std::nullopt;
}

bool PeerHealth::suspected(const Session& peer) const {
  const Record* p = find(peer);
  return p != nullptr && p->rest.begun();
}

// ---- its link ----

void PeerHealth::went_down(const Session& peer, TimePoint now) { peers_[peer].down_until = now + kDownTime; }

void PeerHealth::came_up(const Session& peer) {
  if (const auto it = peers_.find(peer); it != peers_.end()) it->second.down_until = {};
}

void PeerHealth::set_link_heard(const Session& peer, std::optional<TimePoint> heard, TimePoint now, bool awaited) {
  if (!heard) {
    if (const auto it = peers_.find(peer); it != peers_.end()) it->second.link_heard.reset();
    return;
  }
  Record& p = peers_[peer];
  const std::optional<TimePoint> before = std::exchange(p.link_heard, heard);
  if (before && *heard > *before) note_heard(p, listened(now) - (now - *heard), awaited);
}

void PeerHealth::unfit(const Session& peer, TimePoint until) { peers_[peer].unfit_until = until; }

// ---- its words ----

void PeerHealth::heard(const Session& peer, TimePoint now, bool awaited) {
  if (const auto it = peers_.find(peer); it != peers_.end()) note_heard(it->second, listened(now), awaited);
}

void PeerHealth::note_heard(Record& p, Duration at, bool awaited) {
  if (at <= p.heard) return;
  const Duration pause = at - p.heard;
  p.heard = at;
  if (awaited && pause <= p.silence()) p.pause = std::max(pause, p.pause - pause / kPauseFades);
}

bool PeerHealth::silent(const Session& peer, Duration since, TimePoint now) const {
  const Record* found = find(peer);
  const Record p = found == nullptr ? Record{} : *found;
  return listened(now) - std::max(p.heard, since) > p.silence();
}

bool PeerHealth::tick(TimePoint now) {
  const bool away = now - ticked_ > kSilence;
  listened_ = listened(now);
  ticked_ = now;
  return away;
}

// ---- its deadlines ----

void PeerHealth::missed(const Session& peer, TimePoint now) {
  Record& p = peers_[peer];
  if (p.rest.begun() && now < p.rests_until) return;  // it had this one before it was suspected: no probe failed
  p.rests_until = now + p.rest.next();
  p.missed_at = now;
}

void PeerHealth::delivered(const Session& peer) {
  if (const auto it = peers_.find(peer); it != peers_.end() && !it->second.stranded) it->second.rest.reset();
}

void PeerHealth::strand(const Session& peer, TimePoint now) {
  missed(peer, now);
  peers_[peer].stranded = true;
}

void PeerHealth::rejoined(const Session& peer) {
  if (const auto it = peers_.find(peer); it != peers_.end()) it->second.stranded = false;
  delivered(peer);
}

// ---- its credits ----

void PeerHealth::asked(const Session& peer, TimePoint now, bool awaited) {
  Record& p = peers_[peer];
  if (!awaited) p.heard = listened(now);
  if (++p.held > p.fits) p.next_probe = now + p.probe_pause.last;
}

void PeerHealth::ended(const Session& peer) {
  const auto it = peers_.find(peer);
  if (it == peers_.end() || it->second.held == 0) return;
  --it->second.held;
  news_ = true;
}

void PeerHealth::accepted(const Session& peer, TimePoint asked, TimePoint now) {
  const auto it = peers_.find(peer);
  if (it == peers_.end() || !it->second.probe_pause.begun() || asked <= it->second.refused_at) return;
  Record& p = it->second;
  p.fits = std::max(p.fits, p.held);
  p.probe_pause.reset();
  p.probe_pause.next();
  p.next_probe = now;
  news_ = true;
}

void PeerHealth::refused(const Session& peer, TimePoint asked, TimePoint now) {
  Record& p = peers_[peer];
  const bool again = p.remembers_refusal(now);
  p.fits = again ? std::min(p.fits, p.held) : p.held;
  if (!again) p.probe_pause.reset();
  // One that was under way when the peer refused another is no probe.
  if (!again || asked > p.refused_at) p.probe_pause.next();
  p.next_probe = now + p.probe_pause.last;
  p.refused_at = now;
}

bool PeerHealth::take_news(TimePoint now) {
  if (std::exchange(news_, false)) return true;
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& item) {
    return item.second.remembers_refusal(now) && item.second.next_probe <= now;
  });
}

const PeerHealth::Record* PeerHealth::find(const Session& peer) const {
  const auto it = peers_.find(peer);
  return it == peers_.end() ? nullptr : &it->second;
}

}  // namespace shoal
