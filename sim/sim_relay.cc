#include "sim/sim_relay.h"

#include <algorithm>
#include <limits>

namespace shoal {

void SimRelay::begin(double bytes_per_second) {
  stalled_ = frozen_ = false;
  set_rate(bytes_per_second);
  lives_ = true;
}

void SimRelay::end() {
  settle();
  lives_ = false;
  homes_.clear();
  waiting_ = {};
}

double SimRelay::allowed() const {
  if (!lives_) return allowed_;
  return rate_ <= 0 ? std::numeric_limits<double>::infinity() : allowed_ + rate_ * seconds_of(loop_.now() - since_);
}

void SimRelay::settle() {
  allowed_ = allowed();
  since_ = loop_.now();
}

void SimRelay::set_rate(double bytes_per_second) {
  settle();
  rate_ = bytes_per_second;
}

void SimRelay::set_stalled(bool stalled) {
  stalled_ = stalled;
  pump();
}

void SimRelay::set_frozen(bool frozen) {
  frozen_ = frozen;
  pump();
}

void SimRelay::forget(const SimWire* wire) {
  std::erase_if(homes_, [&](const auto& entry) { return entry.second.wire == wire; });
}

void SimRelay::break_home(const SimWire* wire, TimePoint since) {
  for (auto& [peer, home] : homes_)
    if (home.wire == wire) home.since = since;
}

SimWire* SimRelay::home_of(const PeerId& peer) const {
  const auto found = homes_.find(peer);
  return found == homes_.end() || found->second.since > loop_.now() ? nullptr : found->second.wire;
}

// ---- its line ----

void SimRelay::carry(ConnectionId id, int side, Lane lane, std::uint64_t bytes, std::function<void()> through) {
  if (!lives_) return;
  waiting_[static_cast<std::size_t>(lane)][{id, side}].push_back({bytes, std::move(through)});
  pump();
}

void SimRelay::pump() {
  for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
    if (busy_ || stalled()) return;
    Turns& turns = waiting_[static_cast<std::size_t>(lane)];
    std::erase_if(turns, [&](const auto& entry) { return entry.second.empty() || !stands_(entry.first.first); });
    if (turns.empty()) continue;
    auto next = turns.upper_bound(last_[static_cast<std::size_t>(lane)]);
    if (next == turns.end()) next = turns.begin();
    const auto turn = last_[static_cast<std::size_t>(lane)] = next->first;
    const std::uint64_t bytes = std::min(next->second.front().bytes, kPieceBytes);
    const Duration time = rate_ <= 0 ? Duration::zero() : from_seconds(static_cast<double>(bytes) / rate_);
    busy_ = true;
    loop_.after(time, lifetime_.guard([this, lane, turn, bytes] { pass(lane, turn, bytes); }));
  }
}

void SimRelay::pass(Lane lane, std::pair<ConnectionId, int> turn, std::uint64_t bytes) {
  busy_ = false;
  carried_ += bytes;
  const auto found = waiting_[static_cast<std::size_t>(lane)].find(turn);
  if (found != waiting_[static_cast<std::size_t>(lane)].end() && !found->second.empty()) {
    Waiting& first = found->second.front();
    first.bytes -= std::min(first.bytes, bytes);
    if (first.bytes == 0) {
      const auto through = std::move(first.through);
      found->second.pop_front();
      through();
    }
  }
  pump();
}

}  // namespace shoal
