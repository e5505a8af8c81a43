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
  // In a row: a pair that was not blamed this time begins anew, but for those that rest or were tried before.
  std::erase_if(pairs_, [&](const auto& entry) { return !entry.second.out && !blamed.contains(entry.first); });
  for (auto& [key, pair] : pairs_)
    if (!blamed.contains(key)) pair.attempts = 0;
  return blamed;
}

std::vector<UnreachablePairs::LeftOut> UnreachablePairs::on_attempt_failed(
    std::span<const Blame> blames, const std::function<std::uint64_t(const PeerId&)>& settled, TimePoint now) {
  std::set<Key> open = note(blames);
  std::erase_if(open, [&](const Key& key) {
    const Pair& pair = pairs_.at(key);
    return pair.attempts < kAttempts && !pair.out;
  });
  std::vector<LeftOut> out;
  while (!open.empty()) {
    std::map<PeerId, std::uint32_t> votes;
    for (const Key& key : open) {
      votes[key.first] += pairs_.at(key).blames_first;
      votes[key.second] += pairs_.at(key).blames_second;
    }
    // A peer that was left out before stays so: another choice would make the other one miss rounds too.
    const auto rank = [&](const PeerId& peer) {
      const bool before =
          std::any_of(open.begin(), open.end(), [&](const Key& key) { return pairs_.at(key).out == peer; });
      return std::tuple(!before, UINT32_MAX - votes.at(peer), settled(peer), peer);
    };
    PeerId chosen = votes.begin()->first;
    for (const auto& [peer, count] : votes)
      if (rank(peer) < rank(chosen)) chosen = peer;
    LeftOut entry{chosen, {}, Duration(0), false};
    for (auto at = open.begin(); at != open.end();) {
      if (at->first != chosen && at->second != chosen) {
        ++at;
        continue;
      }
      Pair& pair = pairs_.at(*at);
      pair.out = chosen;
      const Duration rest = pair.rest.next();
      pair.until = now + rest;
      if (rest > entry.rest) entry = {chosen, at->first == chosen ? at->second : at->first, rest, pair.malformed};
      at = open.erase(at);
    }
    out.push_back(entry);
  }
  make_room();
  return out;
}

void UnreachablePairs::make_room() {
  while (pairs_.size() > kPairsMax)
    pairs_.erase(std::min_element(pairs_.begin(), pairs_.end(),
                                  [](const auto& a, const auto& b) { return a.second.until < b.second.until; }));
}

void UnreachablePairs::on_commit(const std::set<PeerId>& agreed, const std::set<PeerId>& present) {
  std::erase_if(pairs_, [&](const auto& entry) {
    const auto& [first, second] = entry.first;
    const std::optional<PeerId>& out = entry.second.out;
    if (!out) return true;  // not in a row any more
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
    pair.attempts = kAttempts - 1;
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
