#pragma once
// Who of the next stage has room for one more microbatch. A peer's credits are its own and shared with other holders;
// what a holder knows of them are refusals: when it was refused, what it had there was all that fits. So a refusal
// belongs to the peer and not to the microbatch that met it. While it is remembered that peer is asked when one of ours
// ended there, and otherwise by one microbatch at a time, a probe, with pauses that grow while probes are refused: as
// many messages as there are peers, however many microbatches wait (compare credit-based flow control, Kung and Morris
// 1995, and the probing of a congestion window, Jacobson 1988). Pure; `now` is passed in. Thread: loop only. Bounds:
// one record for each peer that was asked.
#include <cstdint>
#include <unordered_map>

#include "common/backoff.h"
#include "common/ids.h"
#include "common/time.h"

namespace shoal {

class PeerCredits {
 public:
  static constexpr Duration kPauseMin = 50ms, kPauseMax = 500ms;
  static constexpr Duration kRemembered = 2s;  // a refusal, after which nothing is known of the peer again

  // Whether one more is worth asking for.
  bool has_room(const Session& peer, TimePoint now) const;
  void asked(const Session& peer, TimePoint now);  // it holds one more of ours
  void ended(const Session& peer);                 // one less
  // What was asked at `asked` got a word that is no refusal.
  void accepted(const Session& peer, TimePoint asked, TimePoint now);
  // What was asked at `asked` was refused for want of a credit. REQUIRES: ended() was called for it.
  void refused(const Session& peer, TimePoint asked, TimePoint now);
  void forget(const Session& peer) { peers_.erase(peer); }

  // Whether a place may have come free since the last call, or a probe is due: who waits for room looks again.
  bool take_news(TimePoint now);

 private:
  struct Peer {
    std::uint32_t held = 0, fits = 0;
    Backoff pause{kPauseMin, kPauseMax};  // between probes; not begun: it never refused
    TimePoint refused{}, next_probe{};
  };
  static bool remembers(const Peer& peer, TimePoint now) {
    return peer.pause.begun() && now - peer.refused < kRemembered;
  }

  std::unordered_map<Session, Peer> peers_;
  bool news_ = false;
};

}  // namespace shoal
