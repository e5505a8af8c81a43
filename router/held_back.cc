#include "router/held_back.h"

#include <algorithm>

namespace shoal {
namespace {

constexpr std::uint64_t kWindows = 3;  // two that it may be in, and what is counted while the older one settles

}  // namespace

void HeldBack::acknowledged(StageId stage, const EntryName& entry, std::uint64_t targets, TimePoint now) {
  Holder& holder = holders_[entry.session];
  holder.stage = stage;
  if (holder.held.try_emplace(entry.serial, Held{holder.targets, 0, now}).second) holder.targets += targets;
}

void HeldBack::forget(const EntryName& entry) {
  if (const auto at = holders_.find(entry.session); at != holders_.end()) at->second.held.erase(entry.serial);
}

HeldBack::Culprits HeldBack::on_round_commit(const RoundCommit& commit, TimePoint now) {
  Culprits culprits;
  for (const Secured& brought : commit.secured) {
    const auto at = holders_.find(brought.session);
    if (at == holders_.end() || at->second.stage != commit.stage) continue;
    Holder& holder = at->second;
    for (const std::uint64_t serial : brought.serials)
      if (const auto entry = holder.held.find(serial); entry != holder.held.end()) {
        holder.missed_max = std::max(holder.missed_max, entry->second.missed);
        holder.longest = std::max(holder.longest, now - entry->second.at);
        holder.held.erase(entry);
      }
    if (commit.step.value > 0) continue;
    std::uint32_t most = 0;
    for (auto& [serial, entry] : holder.held)
      if (holder.targets_at_round > entry.behind + kWindows * window_) most = std::max(most, ++entry.missed);
    holder.targets_at_round = holder.targets;
    const std::uint32_t usual = usual_missed(commit.stage, brought.session);
    if (most > usual + 1)
      culprits.emplace_back(brought.session, "it left entries whose commits it acknowledged out of " +
                                                 std::to_string(most) + " rounds that they belong to, and others of " +
                                                 std::to_string(usual) + " at most");
  }
  return culprits;
}

HeldBack::Culprits HeldBack::on_full(const std::vector<Session>& because_of, TimePoint now) {
  std::erase_if(full_since_,
                [&](const auto& one) { return std::ranges::find(because_of, one.first) == because_of.end(); });
  Culprits culprits;
  for (const Session& session : because_of) {
    const Duration full = now - full_since_.try_emplace(session, now).first->second;
    const std::optional<Duration> usual = usual_wait(session);
    if (!usual || full <= std::max(*usual, least_)) continue;
    culprits.emplace_back(
        session, "nothing can be issued because of entries of it that no round has, for " +
                     std::to_string(std::chrono::duration_cast<std::chrono::seconds>(full).count()) +
                     " s; those of others took " +
                     std::to_string(std::chrono::duration_cast<std::chrono::seconds>(*usual).count()) + " s at most");
  }
  return culprits;
}

std::uint32_t HeldBack::usual_missed(StageId stage, const Session& but) const {
  std::uint32_t usual = 0;
  for (const auto& [session, holder] : holders_)
    if (session != but && holder.stage == stage) usual = std::max(usual, holder.missed_max);
  return usual;
}

std::optional<Duration> HeldBack::usual_wait(const Session& but) const {
  std::optional<Duration> usual;
  for (const auto& [session, holder] : holders_)
    if (session != but && holder.longest > Duration(0))
      usual = std::max(usual.value_or(holder.longest), holder.longest);
  return usual;
}

}  // namespace shoal
