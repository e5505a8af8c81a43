#pragma once
// Whether a peer of the next stage may be asked for one more microbatch, and why not: one record a session of what its
// link, its words, its misses and its refusals say. Pure; `now` is passed in. Thread: loop only. Bounds: one record for
// each member that was asked or whose link was lost; forget() ends it.
//
// Misses: a missed deadline is evidence. The peer is suspected until it delivers, and gets one microbatch at a time, a
// probe. Before each probe it rests, for twice as long after every probe that failed, and for as long as its link
// stands and has brought nothing since the miss: a probe is a real microbatch, and a stopped peer costs it its
// patience.
//
// Credits: a peer's credits are its own, and other holders use them too. A holder knows only refusals: when it was
// refused, what it had there was all that fits. So a refusal belongs to the peer and not to the microbatch that met it.
// While the refusal is remembered, the peer is full: it is asked when one of our microbatches ended there, and
// otherwise by one microbatch at a time, a probe. The pauses before probes grow while probes are refused. So a full
// peer costs as many messages as there are peers, however many microbatches wait (compare credit-based flow control,
// Kung and Morris 1995, and the probing of a congestion window, Jacobson 1988).
//
// Silence is measured in time that this process listened. Between two ticks it listens for kListenMax at most: what
// others said in a longer gap may wait in our own loop, or in our sockets.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "common/backoff.h"
#include "common/ids.h"
#include "common/time.h"

namespace shoal {

// The strongest reason comes first.
enum class WhyNot : std::uint8_t {
  kDown,       // its link was lost lately and did not come up again
  kUnfit,      // its tensors could not be used: others are asked for a while, whatever becomes of its link
  kFull,       // it refused for want of a credit, none of ours ended there since, and no probe is due
  kResting,    // it is suspected, and no probe is due
  kStranded,   // it says that nobody of the stage after it answers it
  kSuspected,  // it missed a deadline and has delivered nothing since
};

class PeerHealth {
 public:
  static constexpr Duration kDownTime = 2s;                       // after a lost link, unless it comes up again
  static constexpr Duration kRestMin = 2s, kRestMax = 16s;        // of a suspected peer between probes
  static constexpr Duration kPauseMin = 50ms, kPauseMax = 500ms;  // of a full peer between probes
  static constexpr Duration kRemembered = 2s;  // a refusal; after that nothing is known of the peer's credits again
  // A session is silent when nothing at all of it is heard for four beats, or for twice the longest pause that it made
  // lately while it had claims of ours and was not silent yet. So a peer is given more when it beats late because its
  // machine or its line is slow, and a peer that froze teaches no patience.
  static constexpr Duration kSilence = 1000ms, kSilenceMax = 4s;
  static constexpr int kPauseFades = 16;  // a pause counts less by the 16th part of the time that is waited after it
  static constexpr Duration kListenMax = 250ms;

  // The first reason that holds, from `from` on; none: it may be asked.
  std::optional<WhyNot> why_not(const Session& peer, TimePoint now, WhyNot from = WhyNot::kDown) const;
  bool suspected(const Session& peer) const;

  // ---- its link ----
  void went_down(const Session& peer, TimePoint now);
  void came_up(const Session& peer);
  // When its link brought anything last, a part of a frame as well: who sends is not silent, however slow the line.
  // None: the link is down, and only a message to the peer dials it. `awaited` as below.
  void set_link_heard(const Session& peer, std::optional<TimePoint> heard, TimePoint now, bool awaited);
  void unfit(const Session& peer, TimePoint until);

  // ---- its words ----
  // A message or frames of it came. `awaited`: it had claims of ours.
  void heard(const Session& peer, TimePoint now, bool awaited);
  // Whether nothing of it was heard for too long since `since`, in time that was listened.
  bool silent(const Session& peer, Duration since, TimePoint now) const;
  Duration listened(TimePoint now) const { return listened_ + std::min(now - ticked_, kListenMax); }
  // Call it in every tick. True: this process stood still since the last one, for longer than a silence.
  bool tick(TimePoint now);

  // ---- its deadlines ----
  void missed(const Session& peer, TimePoint now);
  void delivered(const Session& peer);
  // To be stranded is a missed deadline too, which a forward that the peer finishes does not make good: the stage after
  // it must have answered it again (rejoined).
  void strand(const Session& peer, TimePoint now);
  void rejoined(const Session& peer);

  // ---- its credits ----
  // It holds one more of ours. `awaited`: it had claims of ours before.
  void asked(const Session& peer, TimePoint now, bool awaited);
  void ended(const Session& peer);  // one less
  // What was asked at `asked` got a word that is no refusal.
  void accepted(const Session& peer, TimePoint asked, TimePoint now);
  // What was asked at `asked` was refused for want of a credit. REQUIRES: ended() was called for it.
  void refused(const Session& peer, TimePoint asked, TimePoint now);
  // Whether it refused lately and took nothing since, whether or not a probe is due.
  bool without_room(const Session& peer, TimePoint now) const {
    const Record* p = find(peer);
    return p != nullptr && p->has_no_room(now);
  }
  // Whether a place may have come free since the last call, or a probe of a full peer is due.
  bool take_news(TimePoint now);

  void forget(const Session& peer) { peers_.erase(peer); }

 private:
  struct Record {
    TimePoint down_until{}, unfit_until{};
    std::optional<TimePoint> link_heard{};
    Duration heard{0}, pause{0};  // the newest word, and the longest time between two lately: both in listened time
    Backoff rest{kRestMin, kRestMax};  // not begun: it is not suspected
    TimePoint rests_until{}, missed_at{};
    bool stranded = false;
    std::uint32_t held = 0, fits = 0;           // of ours
    Backoff probe_pause{kPauseMin, kPauseMax};  // not begun: it never refused
    TimePoint refused_at{}, next_probe{};

    bool rests(TimePoint now) const {
      return rest.begun() && (now < rests_until || (link_heard && *link_heard <= missed_at));
    }
    bool remembers_refusal(TimePoint now) const { return probe_pause.begun() && now - refused_at < kRemembered; }
    bool has_no_room(TimePoint now) const { return remembers_refusal(now) && held >= fits; }
    bool full(TimePoint now) const { return has_no_room(now) && now < next_probe; }
    // A link that is being dialled brings nothing: over long ways that takes seconds, and a dial that failed is told.
    Duration silence() const { return link_heard ? std::clamp(2 * pause, kSilence, kSilenceMax) : kSilenceMax; }
  };
  const Record* find(const Session& peer) const;
  static void note_heard(Record& p, Duration at, bool awaited);  // `at`: in listened time

  std::unordered_map<Session, Record> peers_;
  bool news_ = false;  // of room
  TimePoint ticked_;
  Duration listened_{0};  // until then
};

}  // namespace shoal
