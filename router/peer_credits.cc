#include "router/peer_credits.h"

#include <algorithm>
#include <utility>

namespace shoal {

bool PeerCredits::has_room(const Session& peer, TimePoint now) const {
  const auto it = peers_.find(peer);
  if (it == peers_.end() || !remembers(it->second, now)) return true;
  return it->second.held < it->second.fits || now >= it->second.next_probe;
}

void PeerCredits::asked(const Session& peer, TimePoint now) {
  Peer& p = peers_[peer];
  if (++p.held > p.fits) p.next_probe = now + p.pause.last;
}

void PeerCredits::ended(const Session& peer) {
  const auto it = peers_.find(peer);
  if (it == peers_.end() || it->second.held == 0) return;
  --it->second.held;
  news_ = true;
}

void PeerCredits::accepted(const Session& peer, TimePoint asked, TimePoint now) {
  const auto it = peers_.find(peer);
  if (it == peers_.end() || !it->second.pause.begun() || asked <= it->second.refused) return;
  Peer& p = it->second;
  p.fits = std::max(p.fits, p.held);
  p.pause.reset();
  p.pause.next();
  p.next_probe = now;
  news_ = true;
}

void PeerCredits::refused(const Session& peer, TimePoint asked, TimePoint now) {
  Peer& p = peers_[peer];
  p.fits = remembers(p, now) ? std::min(p.fits, p.held) : p.held;
  if (!remembers(p, now)) {
    p.pause.reset();
    p.pause.next();
  } else if (asked > p.refused) {  // not one of those that were under way when it refused another
    p.pause.next();
  }
  p.next_probe = now + p.pause.last;
  p.refused = now;
}

bool PeerCredits::take_news(TimePoint now) {
  if (std::exchange(news_, false)) return true;
  return std::any_of(peers_.begin(), peers_.end(),
                     [&](const auto& item) { return remembers(item.second, now) && item.second.next_probe <= now; });
}

}  // namespace shoal
