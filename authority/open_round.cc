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

bool OpenRound::owns(const Session& session) const {
  return std::ranges::any_of(open.owners, [&](std::uint16_t owner) { return open.members[owner] == session; });
}

bool OpenRound::all_contributed() const {
  return std::ranges::all_of(members, [](const auto& entry) { return entry.second.contributed.has_value(); });
}

bool OpenRound::refused() const {
  return std::ranges::any_of(members,
                             [](const auto& entry) { return entry.second.failed && !entry.second.contributed; });
}

OpenRound::Sum OpenRound::contributed_sum() const {
  Sum sum{};
  for (const auto& [session, member] : members) {
    if (!member.contributed) continue;
    sum.first += member.contributed->weight;
    sum.second += member.contributed->tag;
  }
  return sum;
}

std::pair<Digest, std::size_t> OpenRound::best_vote() const {
  const Sum sum = contributed_sum();
  std::map<Digest, std::size_t> votes;
  for (const auto& [session, member] : members)
    if (member.agreed && sum_of(*member.agreed) == sum) ++votes[member.agreed->digest];
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
  return at != members.end() && at->second.agreed && at->second.agreed->digest == digest &&
         sum_of(*at->second.agreed) == contributed_sum();
}

bool OpenRound::doubtful() const {
  const Sum sum = contributed_sum();
  return std::ranges::any_of(
      members, [&](const auto& entry) { return entry.second.agreed && sum_of(*entry.second.agreed) != sum; });
}

// The majority is believed before the contributions: a member that told us another weight than it told the others is
// the one that alone says what it told us.
std::vector<Session> OpenRound::contradicting() const {
  std::map<Sum, std::size_t> votes;
  for (const auto& [session, member] : members)
    if (member.agreed) ++votes[sum_of(*member.agreed)];
  std::optional<Sum> true_sum;
  for (const auto& [sum, count] : votes)
    if (2 * count > members.size()) true_sum = sum;
  const Sum contributed = contributed_sum();
  if (members.size() == 1 || (!true_sum && undecided() == 0 && votes.contains(contributed))) true_sum = contributed;
  std::vector<Session> named;
  for (const auto& [session, member] : members)
    if (true_sum && member.agreed && sum_of(*member.agreed) != *true_sum) named.push_back(session);
  return named;
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

std::optional<LastToAgree> OpenRound::last_to_agree(const Digest& digest) const {
  std::vector<std::pair<TimePoint, Session>> order;
  for (const auto& [session, member] : members)
    if (agrees_on(session, digest)) order.emplace_back(member.agreed_at, session);
  if (order.size() < 2) return std::nullopt;
  std::ranges::sort(order);
  return LastToAgree{order.back().second, order.back().first - order[order.size() - 2].first};
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
