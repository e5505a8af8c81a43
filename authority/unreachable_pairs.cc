#include "authority/unreachable_pairs.h"

#include <algorithm>
#include <tuple>

namespace shoal {

// One blame of each peer in an attempt, so that nobody outweighs the others. Returns the pairs.
std::set<UnreachablePairs::Key> UnreachablePairs::note(std::span<const Blame> blames) {
  std::set<Key> blamed;
  for (const Blame& blame : blames) {
    if (blame.by == blame.whom) continue;
    const Key key = std::minmax(blame.by, blame.whom);
    Pair& pair = pairs_[key];
    ++(blame.whom == key.first ? pair.blames_first : pair.blames_second);
    pair.malformed = blame.malformed;
    if (blamed.insert(key).second) ++pair.attempts;
  }
  // In a row: a pair that was not blamed this time begins anew, but for those that were settled before.
  std::erase_if(pairs_, [&](const auto& entry) { return !entry.second.settled && !blamed.contains(entry.first); });
  for (auto& [key, pair] : pairs_)
    if (!blamed.contains(key)) pair.attempts = 0;
  return blamed;
}

std::size_t UnreachablePairs::meeting_all(const std::set<PeerId>& peers, const std::set<PeerId>& among,
                                          TimePoint now) const {
  std::set<PeerId> others;
  for (const auto& [key, pair] : pairs_)
    if (pair.unmet(now) && peers.contains(key.first) && peers.contains(key.second))
      others.insert({key.first, key.second});
  return static_cast<std::size_t>(
      std::ranges::count_if(among, [&](const auto& peer) { return !others.contains(peer); }));
}

std::vector<UnreachablePairs::Settled> UnreachablePairs::on_attempt_failed(
    std::span<const Blame> blames, const std::set<PeerId>& members, std::size_t owners,
    const std::function<std::uint64_t(const PeerId&)>& settled, TimePoint now) {
  for (const Key& key : note(blames)) {
    Pair& pair = pairs_.at(key);
    if (pair.attempts < kAttempts && !pair.settled) continue;
    pair.settled = true;
    pair.until = now + pair.rest.next();
  }
  std::map<Key, Duration> open;  // with those of before, to which the new ones come
  for (const auto& [key, pair] : pairs_)
    if (pair.settled && now < pair.until && members.contains(key.first) && members.contains(key.second))
      open[key] = pair.until - now;
  std::vector<Settled> made;
  for (std::set<PeerId> in = members;;) {
    const bool met = meeting_all(in, in, now) >= owners;
    std::map<PeerId, std::pair<std::uint32_t, std::uint32_t>> votes;  // pairs, blames
    for (const auto& [key, rest] : open) {
      const Pair& pair = pairs_.at(key);
      if (met && !pair.malformed) continue;
      for (const auto& [peer, blames_of] :
           {std::pair(key.first, pair.blames_first), std::pair(key.second, pair.blames_second)}) {
        ++votes[peer].first;
        votes[peer].second += blames_of;
      }
    }
    if (votes.empty()) break;
    // A peer that was left out before stays so: another choice would make the other one miss rounds too.
    const auto rank = [&](const PeerId& peer) {
      const bool before =
          std::any_of(open.begin(), open.end(), [&](const auto& one) { return pairs_.at(one.first).out == peer; });
      const auto& [in_pairs, blamed] = votes.at(peer);
      return std::tuple(!before, UINT32_MAX - in_pairs, UINT32_MAX - blamed, settled(peer), peer);
    };
    PeerId chosen = votes.begin()->first;
    for (const auto& [peer, count] : votes)
      if (rank(peer) < rank(chosen)) chosen = peer;
    Settled entry{chosen, {}};
    std::erase_if(open, [&](const auto& one) {
      const auto& [first, second] = one.first;
      if (first != chosen && second != chosen) return false;
      Pair& pair = pairs_.at(one.first);
      pair.out = chosen;
      if (one.second > entry.rest) entry = {chosen, first == chosen ? second : first, one.second, pair.malformed};
      return true;
    });
    in.erase(chosen);
    made.push_back(entry);
  }
  for (const auto& [key, rest] : open) {
    pairs_.at(key).out.reset();
    if (pairs_.at(key).attempts > 0) made.push_back({key.first, key.second, rest, false, false});
  }
  make_room();
  return made;
}

std::vector<PeerId> UnreachablePairs::bring_back(const std::set<PeerId>& reliable, std::set<PeerId> ready,
                                                 std::size_t owners, TimePoint now) {
  std::set<PeerId> back;
  for (const auto& [key, pair] : pairs_)
    if (pair.out && pair.unmet(now)) back.insert(*pair.out);
  ready.insert(back.begin(), back.end());
  if (back.empty() || meeting_all(ready, reliable, now) < owners) return {};
  for (auto& [key, pair] : pairs_)
    if (pair.unmet(now)) pair.out.reset();
  return {back.begin(), back.end()};
}

std::vector<std::pair<PeerId, PeerId>> UnreachablePairs::apart(TimePoint now) const {
  std::vector<Key> apart;
  for (const auto& [key, pair] : pairs_)
    if (!pair.out && pair.unmet(now)) apart.push_back(key);
  return apart;
}

void UnreachablePairs::make_room() {
  while (pairs_.size() > kPairsMax)
    pairs_.erase(std::min_element(pairs_.begin(), pairs_.end(),
                                  [](const auto& a, const auto& b) { return a.second.until < b.second.until; }));
}

void UnreachablePairs::on_commit(const std::set<PeerId>& agreed, const std::set<PeerId>& owners,
                                 const std::set<PeerId>& present) {
  std::erase_if(pairs_, [&](const auto& entry) {
    const auto& [first, second] = entry.first;
    const std::optional<PeerId>& out = entry.second.out;
    if (!entry.second.settled) return true;  // not in a row any more
    if (!out)
      return agreed.contains(first) && agreed.contains(second) && (owners.contains(first) || owners.contains(second));
    const PeerId& other = *out == first ? second : first;
    return agreed.contains(*out) && (agreed.contains(other) || !present.contains(other));
  });
}

void UnreachablePairs::on_left(const PeerId& peer) {
  std::erase_if(pairs_, [&](const auto& entry) { return entry.first.first == peer || entry.first.second == peer; });
}

void UnreachablePairs::on_gone(const PeerId& peer) {
  for (auto& [key, pair] : pairs_) {
    if (!pair.out || pair.out == peer || (key.first != peer && key.second != peer)) continue;
    pair.out.reset();
  }
}

void UnreachablePairs::try_now(TimePoint now, const std::function<bool(const PeerId&)>& brought_all) {
  std::map<PeerId, std::size_t> others;  // that the newest attempt blamed with each that rests
  for (const auto& [key, pair] : pairs_)
    if (pair.out && pair.attempts > 0) ++others[*pair.out];
  for (auto& [key, pair] : pairs_) {
    if (!pair.out || pair.until <= now || brought_all(*pair.out)) continue;
    const PeerId& other = pair.out == key.first ? key.second : key.first;
    if (pair.attempts > 0 && others.at(*pair.out) == 1 && !pair.malformed && brought_all(other))
      pair.out = other;
    else
      pair.until = now;
  }
}

bool UnreachablePairs::rests(const PeerId& peer, TimePoint now) const { return why(peer, now).has_value(); }

bool UnreachablePairs::doubted(const PeerId& peer) const {
  return std::any_of(pairs_.begin(), pairs_.end(), [&](const auto& entry) { return entry.second.out == peer; });
}

bool UnreachablePairs::sends_malformed(const PeerId& peer) const {
  return std::any_of(pairs_.begin(), pairs_.end(),
                     [&](const auto& entry) { return entry.second.out == peer && entry.second.malformed; });
}

std::optional<UnreachablePairs::Rest> UnreachablePairs::why(const PeerId& peer, TimePoint now) const {
  std::optional<Rest> longest;
  for (const auto& [key, pair] : pairs_) {
    if (pair.out != peer || now >= pair.until || (longest && longest->until >= pair.until)) continue;
    longest = Rest{key.first == peer ? key.second : key.first, pair.until, pair.malformed};
  }
  return longest;
}

}  // namespace shoal
