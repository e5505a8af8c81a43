#include "authority/open_round.h"

#include <algorithm>

namespace shoal {
namespace {

constexpr Duration kWaitingFresh = 2500ms;  // a member that waits says so every second

}  // namespace

OpenRound::OpenRound(RoundOpen opening, const Step* made) : open(std::move(opening)) {
  if (made != nullptr) step = *made;
  for (const Session& session : open.members) members.try_emplace(session);
}

RoundMember* OpenRound::find(const Session& session) {
  const auto at = members.find(session);
  return at == members.end() ? nullptr : &at->second;
}

bool OpenRound::has_contribution(const Session& session) const {
  const auto at = members.find(session);
  return at != members.end() && at->second.contributed;
}

bool OpenRound::all_contributed() const {
  return std::ranges::all_of(members, [](const auto& entry) { return entry.second.contributed.has_value(); });
}

bool OpenRound::refused() const {
  return std::ranges::any_of(members,
                             [](const auto& entry) { return entry.second.failed && !entry.second.contributed; });
}

std::pair<Digest, std::size_t> OpenRound::best_vote() const {
  std::map<Digest, std::size_t> votes;
  for (const auto& [session, member] : members)
    if (member.agreed) ++votes[member.agreed->digest];
  const auto best = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
  if (best == votes.end()) return {};
  return *best;
}

std::optional<Digest> OpenRound::majority() const {
  const auto [digest, votes] = best_vote();
  return 2 * votes > members.size() ? std::optional(digest) : std::nullopt;
}

std::size_t OpenRound::undecided() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(members, [](const auto& entry) { return !entry.second.decided(); }));
}

bool OpenRound::agrees_on(const Session& session, const Digest& digest) const {
  const auto at = members.find(session);
  return at != members.end() && at->second.agreed && at->second.agreed->digest == digest;
}

bool OpenRound::sums_add_up(const Digest& digest) const {
  std::uint64_t weight = 0;
  CountTag tag = 0;
  for (const auto& [session, member] : members) {
    if (!member.contributed) continue;
    weight += member.contributed->weight;
    tag += member.contributed->tag;
  }
  return std::ranges::all_of(members, [&](const auto& entry) {
    const auto& agreed = entry.second.agreed;
    return !agreed || agreed->digest != digest || (agreed->weight == weight && agreed->tag == tag);
  });
}

bool OpenRound::stalled(TimePoint now) {
  if (!all_contributed() || majority()) return false;  // a majority waits for the grace time alone
  for (const auto& [session, member] : members) {
    if (member.decided()) continue;
    if (!member.waiting || now - member.waiting->at > kWaitingFresh) {
      stalled_at.reset();
      return false;
    }
    if (stalled_at && member.waiting->at <= *stalled_at) return false;
  }
  if (stalled_at) return true;
  stalled_at = now;
  return false;
}

RoundCommit OpenRound::commit_of(const Digest& digest) const {
  RoundCommit commit;
  commit.stage = open.stage;
  commit.round = open.round;
  commit.version = Version(open.base.value + 1);
  commit.digest = digest;
  commit.step = open.step;
  for (const auto& [session, member] : members) {
    if (!member.contributed) continue;
    commit.tag += member.contributed->tag;
    commit.secured.push_back({session, member.contributed->entries});
  }
  return commit;
}

}  // namespace shoal
