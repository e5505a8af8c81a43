#pragma once
// Pairs of a stage's peers that cannot exchange the bytes of a round though both answer the authority, or of which one
// sends what the other cannot use; and which of them are left out because of it. By key, not by session: a new session
// of the same peer has the same path to the others.
//
// A pair is made by blames: a failed attempt in which one said that nothing of the other came, or nothing of use. A
// pair that was blamed in two attempts in a row is settled by rule. Two that cannot meet are *apart*: both take part
// and own nothing (authority/owner_choice.h), as long as enough others are in no such pair. Where too few are, and of a
// pair in which one sends what the other cannot use, peers are left out: the one of the most pairs first, so that one
// that blames all others goes and not they; then the most blamed, the one with the fewest targets to bring, the lower
// key. Either holds for kPeerRest; then a round tries the pair as any other (a trial). A commit in which the two met
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
  struct Settled {
    PeerId peer, other;
    Duration rest{0};
    bool malformed = false;  // as the newest blame said
    bool out = true;         // `peer` is left out, `other` of the pair is for people; else the two are apart
  };
  struct Rest {
    PeerId other;
    TimePoint until{};
    bool malformed = false;
  };
  // An attempt of `members` came to nothing; the next one needs `owners`, at least. `settled`: the targets that a peer
  // could bring. Returns what holds from now on.
  std::vector<Settled> on_attempt_failed(std::span<const Blame> blames, const std::set<PeerId>& members,
                                         std::size_t owners, const std::function<std::uint64_t(const PeerId&)>& settled,
                                         TimePoint now);
  // A round was committed; `agreed` had its sum, of which `owners` own parts; `present` are all members of the stage. A
  // trial without the other peer of the pair counts when that is no member any more.
  void on_commit(const std::set<PeerId>& agreed, const std::set<PeerId>& owners, const std::set<PeerId>& present);
  // Enough of the members `reliable` meet all of `ready`, and those that rest because they cannot meet somebody: these
  // are apart instead, and returned.
  std::vector<PeerId> bring_back(const std::set<PeerId>& reliable, std::set<PeerId> ready, std::size_t owners,
                                 TimePoint now);
  // It left by itself: whoever comes back under this key may have another path.
  void on_left(const PeerId& peer);
  // Its session ended against its will: as long as nobody of a pair is there but the one that was left out, it serves.
  // One blame leaves it out again when the other is back.
  void on_gone(const PeerId& peer);
  // The last rounds: a peer that rests is tried once more, since what it holds would be lost. Where the newest attempt
  // blamed it with one other alone, which has brought all (`brought_all`), that one rests instead: a trial of both
  // would fail again as long as the two cannot meet.
  void try_now(TimePoint now, const std::function<bool(const PeerId&)>& brought_all);

  std::vector<std::pair<PeerId, PeerId>> apart(TimePoint now) const;
  bool empty() const { return pairs_.empty(); }
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
    bool settled = false;
    std::optional<PeerId> out;  // none: the two are apart
    Backoff rest = kPeerRest;
    TimePoint until{};
    bool unmet(TimePoint now) const { return settled && !malformed && now < until; }
  };
  using Key = std::pair<PeerId, PeerId>;  // the lower one first

  std::set<Key> note(std::span<const Blame> blames);
  // So many of `among`, which are peers of these, meet all others.
  std::size_t meeting_all(const std::set<PeerId>& peers, const std::set<PeerId>& among, TimePoint now) const;
  void make_room();

  std::map<Key, Pair> pairs_;
};

}  // namespace shoal
