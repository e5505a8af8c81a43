#include "authority/moves.h"

#include <algorithm>

namespace shoal {

std::optional<PlannedMove> Moves::look(std::vector<StageLoad> stages, std::vector<Worker> workers,
                                       const MoveOptions& options, TimePoint now) {
  next_look_ = now + kLookEvery;
  expire(now);
  for (const auto& [peer, move] : moves_) {
    stages[move.to.value].closed = true;
    if (move.phase <= Phase::kLeaving) stages[move.from.value].closed = true;
  }
  for (Worker& worker : workers) {
    const auto move = moves_.find(worker.peer);
    if (move != moves_.end()) worker.stage = move->second.to;
    if (!worker.speed) worker.speed = known_speed(worker.peer);
    worker.movable = worker.movable && move == moves_.end() && !rests_.contains(worker.peer);
  }
  auto planned = plan_move(stages, workers, options);
  const auto before =
      std::exchange(wanted_, planned ? std::optional(std::pair(planned->from, planned->to)) : std::nullopt);
  if (!planned || before != wanted_) return std::nullopt;
  wanted_.reset();
  const auto mover = std::ranges::find(workers, planned->session, &Worker::session);
  moves_[planned->peer] =
      Move{.session = planned->session, .from = planned->from, .to = planned->to, .since = now, .speed = mover->speed};
  return planned;
}

std::optional<StageId> Moves::asked(const Session& session) const {
  for (const auto& [peer, move] : moves_)
    if (move.session == session && move.phase == Phase::kAsked) return move.to;
  return std::nullopt;
}

void Moves::on_leaving(const Session& session) {
  for (auto& [peer, move] : moves_)
    if (move.session == session && move.phase == Phase::kAsked) move.phase = Phase::kLeaving;
}

void Moves::on_joined(const PeerId& peer, const Session& session, StageId stage, TimePoint now) {
  const auto at = moves_.find(peer);
  if (at == moves_.end()) return;
  if (stage != at->second.to) return static_cast<void>(moves_.erase(at));
  at->second.session = session;
  at->second.phase = Phase::kThere;
  at->second.since = now;
}

void Moves::on_serving(const PeerId& peer, const Session& session, TimePoint now) {
  const auto at = moves_.find(peer);
  if (at == moves_.end() || at->second.session != session || at->second.phase != Phase::kThere) return;
  const std::optional<double> speed = at->second.speed;
  moves_.erase(at);
  rest(peer, {now + kRest, speed});
}

void Moves::on_over(const PeerId& peer, const Session& session, bool left, TimePoint now) {
  const auto at = moves_.find(peer);
  if (at == moves_.end() || at->second.session != session) return;
  if (at->second.phase > Phase::kLeaving || !left) return static_cast<void>(moves_.erase(at));
  at->second.phase = Phase::kLeft;
  at->second.since = now;
}

void Moves::expire(TimePoint now) {
  std::erase_if(rests_, [&](const auto& entry) { return entry.second.until <= now; });
  std::erase_if(moves_, [&](const auto& entry) {
    const auto& [peer, move] = entry;
    if (move.phase == Phase::kLeft) return now - move.since > kReturns;
    if (move.phase != Phase::kAsked || now - move.since <= kBegins) return false;
    rest(peer, {now + kRestRefused, move.speed});
    return true;
  });
}

void Moves::rest(const PeerId& peer, const Rest& rest) {
  if (rests_.size() < kRestsMax || rests_.contains(peer)) rests_[peer] = rest;
}

std::optional<double> Moves::known_speed(const PeerId& peer) const {
  if (const auto move = moves_.find(peer); move != moves_.end()) return move->second.speed;
  const auto rest = rests_.find(peer);
  return rest != rests_.end() ? rest->second.speed : std::nullopt;
}

}  // namespace shoal
