#include "router/path_blames.h"

#include <algorithm>

namespace shoal {

void PathBlames::whole(const std::vector<EntryName>& path, const Roster& roster) {
  for (std::size_t k = 0; k < path.size(); ++k)
    if (roster.stage_of(path[k].session) == StageId(static_cast<std::uint16_t>(k))) ++records_[path[k].session].whole;
}

bool PathBlames::stands_out(const Session& session, StageId stage, const Roster& roster) const {
  std::vector<double> others;
  for (const Session& other : roster.serving(stage)) {
    if (other == session) continue;
    const auto at = records_.find(other);
    others.push_back(at == records_.end() ? 0 : at->second.share());
  }
  if (others.empty()) return true;  // with nobody to compare it with
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end());
  return records_.at(session).share() > 2 * *middle;
}

bool PathBlames::outdoes(const Session& session, const Session& other) const {
  const Record &mine = records_.at(session), &its = records_.at(other);
  return mine.share() > 2 * its.share() || (mine.forged > its.forged && mine.share() >= its.share());
}

std::optional<Session> PathBlames::forged(const std::vector<EntryName>& path, std::size_t bad, const Roster& roster,
                                          const std::function<bool(const Session&)>& may_go) {
  ++forged_;
  std::vector<Session> suspects;  // from stage 0
  for (std::size_t k = 0; k <= bad; ++k) {
    const StageId stage(static_cast<std::uint16_t>(k));
    if (roster.stage_of(path[k].session) == stage)
      suspects.push_back(path[k].session);
    else if (k < bad)
      return std::nullopt;  // it made its element, and its session ended since: maybe for this
  }
  for (const Session& session : suspects) ++records_[session].forged;
  if (bad == 0) {  // it says so of itself
    const bool known = !suspects.empty() && may_go(suspects.front());
    return known ? std::optional(suspects.front()) : std::nullopt;
  }
  std::erase_if(suspects,
                [&](const Session& session) { return !stands_out(session, *roster.stage_of(session), roster); });
  for (const Session& session : suspects) {
    if (records_.at(session).forged < kForgedMin) continue;
    const bool sure = records_.at(session).forged >= kForgedSure;
    const bool alone = std::ranges::all_of(suspects, [&](const Session& other) {
      return other == session || outdoes(session, other) || (sure && !outdoes(other, session));
    });
    if (!alone || !may_go(session)) continue;
    for (auto& [who, record] : records_) record.forged = 0;
    return session;
  }
  return std::nullopt;
}

}  // namespace shoal
