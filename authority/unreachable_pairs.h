#pragma once
// Pairs of a stage's peers that cannot exchange the bytes of a round though both answer the authority, or of which one
// sends what the other cannot use; and which of them are left out because of it. By key, not by session: a new session
// of the same peer has the same path to the others.
//
// A pair is made by blames: a failed attempt in which one said that nothing of the other came, or nothing of use. When
// a pair was blamed in two attempts in a row it is settled by rule: peers are left out, the most blamed first, then the
// one with the fewest targets to bring, then the lower key, until no settled pair has both its peers in. A peer that is
// left out rests for kPeerRest; then a round tries it again (a trial). A commit on which both peers of a pair agreed
// forgets the pair, and so does a peer that leaves by itself.
//
// State machine without I/O and clock. Thread: loop only. Bounds: kPairsMax pairs; the one that rests least long goes.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "common/backoff.h"
#include "common/ids.h"
#include "common/time.h"

namespace shoal {

class UnreachablePairs {
 public:
  static constexpr std::uint32_t kAttempts = 2;  // in a row that blame a pair; one is enough for a trial
  static constexpr std::size_t kPairsMax = 256;

  struct Blame {
    PeerId by, whom;
    bool malformed = false;  // its part cannot be used; else nothing of it came
  };
  struct LeftOut {
    PeerId peer, other;  // `other`: of the pair, for people
    Duration rest{0};
    bool malformed = false;  // as the newest blame said
  };
  struct Rest {
    PeerId other;
    TimePoint until{};
    bool malformed = false;
  };
  // An attempt came to nothing. `settled`: the targets that a peer could bring. Returns the peers that are left out
  // from now on.
  std::vector<LeftOut> on_attempt_failed(std::span<const Blame> blames,
                                         const std::function<std::uint64_t(const PeerId&)>& settled, TimePoint now);
  // A round was committed; `agreed` had its sum, `present` are all members of the stage. A trial without the other peer
  // of the pair counts when that is no member any more.
  void on_commit(const std::set<PeerId>& agreed, const std::set<PeerId>& present);
  // It left by itself: whoever comes back under this key may have another path.
  void on_left(const PeerId& peer);
  // Its session ended against its will: as long as nobody of a pair is there but the one that was left out, it serves.
  // One blame leaves it out again when the other is back.
  void on_gone(const PeerId& peer);
  // The last rounds: a peer that rests is tried once more, since what it holds would be lost. Where the newest attempt
  // blamed it with one other alone, which has brought all (`brought_all`), that one rests instead: a trial of both
  // would fail again as long as the two cannot meet.
  void try_now(TimePoint now, const std::function<bool(const PeerId&)>& brought_all);

  bool rests(const PeerId& peer, TimePoint now) const;  // takes part in no round
  // Left out, or on trial: nothing new is sent to it, since no round may secure that.
  bool doubted(const PeerId& peer) const;
  bool sends_malformed(const PeerId& peer) const;  // doubted for that
  // Until when it rests, and because of whom.
  std::optional<Rest> why(const PeerId& peer, TimePoint now) const;

 private:
  struct Pair {
    std::uint32_t attempts = 0;                         // in a row
    std::uint32_t blames_first = 0, blames_second = 0;  // of the lower and of the higher key
    bool malformed = false;                             // the newest blame
    std::optional<PeerId> out;
    Backoff rest = kPeerRest;
    TimePoint until{};
  };
  using Key = std::pair<PeerId, PeerId>;  // the lower one first

  std::set<Key> note(std::span<const Blame> blames);
  void make_room();

  std::map<Key, Pair> pairs_;
};

}  // namespace shoal
