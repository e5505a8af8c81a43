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
  for (Worker& worker : workers)
    worker.movable = worker.movable && !moves_.contains(worker.peer) && !rests_.contains(worker.peer);
  place(workers, {});
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

void Moves::place(std::vector<Worker>& workers, const PeerId& peer) const {
  for (Worker& worker : workers) {
    const auto move = moves_.find(worker.peer);
    if (move != moves_.end()) worker.stage = move->second.to;
    if (!worker.speed) worker.speed = known_speed(worker.peer);
  }
  for (const auto& [mover, move] : moves_)
    if (mover != peer && std::ranges::find(workers, mover, &Worker::peer) == workers.end())
      workers.push_back({.session = move.session, .peer = mover, .stage = move.to, .speed = move.speed});
}

std::optional<StageId> Moves::asked(const PeerId& peer, const Session& session) const {
  const auto at = moves_.find(peer);
  if (at == moves_.end() || at->second.session != session || at->second.phase != Phase::kAsked) return std::nullopt;
  return at->second.to;
}

void Moves::on_leaving(const PeerId& peer, const Session& session, TimePoint now) {
  const auto at = moves_.find(peer);
  if (at == moves_.end() || at->second.session != session || at->second.phase != Phase::kAsked) return;
  at->second.phase = Phase::kLeaving;
  at->second.since = now;
}

void Moves::on_joined(const PeerId& peer, const Session& session, StageId stage, TimePoint now) {
  const auto at = moves_.find(peer);
  if (at == moves_.end()) return;
  if (stage != at->second.to) return forget(at, now + kRestRefused);
  at->second.session = session;
  at->second.phase = Phase::kThere;
  at->second.since = now;
}

void Moves::on_serving(const PeerId& peer, const Session& session, TimePoint now) {
  const auto at = moves_.find(peer);
  if (at == moves_.end() || at->second.session != session || at->second.phase != Phase::kThere) return;
  forget(at, now + kRest);
}

void Moves::on_over(const PeerId& peer, const Session& session, bool left, TimePoint now) {
  const auto at = moves_.find(peer);
  if (at == moves_.end() || at->second.session != session) return;
  if (at->second.phase > Phase::kLeaving || !left) return forget(at, now + kRest);
  at->second.phase = Phase::kLeft;
  at->second.since = now;
}

void Moves::expire(TimePoint now) {
  std::erase_if(rests_, [&](const auto& entry) { return entry.second.until <= now; });
  for (auto at = moves_.begin(); at != moves_.end();) {
    const auto here = at++;
    if (now - here->second.since > patience_of(here->second.phase)) forget(here, now + kRestRefused);
  }
}

Duration Moves::patience_of(Phase phase) {
  switch (phase) {
    case Phase::kAsked:
      return kBegins;
    case Phase::kLeaving:
      return kLeavesMax;
    case Phase::kLeft:
      return kReturns;
    case Phase::kThere:
      return kArrivesMax;
  }
  return Duration(0);
}

void Moves::forget(std::map<PeerId, Move>::iterator move, TimePoint rests_until) {
  const auto& [peer, of] = *move;
  if (rests_.size() < kRestsMax || rests_.contains(peer)) rests_[peer] = {rests_until, of.speed};
  moves_.erase(move);
}

std::optional<double> Moves::known_speed(const PeerId& peer) const {
  if (const auto move = moves_.find(peer); move != moves_.end()) return move->second.speed;
  const auto rest = rests_.find(peer);
  return rest != rests_.end() ? rest->second.speed : std::nullopt;
}

}  // namespace shoal
