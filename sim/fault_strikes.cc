#include "sim/fault_strikes.h"

#include <algorithm>
#include <sstream>

namespace shoal {

namespace {

constexpr Duration kHealthySync = 40ms;
constexpr double kLateShare = 0.03;

bool kills_peer(FaultKind kind) { return kind == FaultKind::kKill || kind == FaultKind::kMachineDeath; }
bool kills_launch(FaultKind kind) { return kind == FaultKind::kLaunchKill || kind == FaultKind::kLaunchPower; }

bool of_launch(FaultKind kind) {
  return kills_launch(kind) || kind == FaultKind::kLaunchFreeze || kind == FaultKind::kSlowDisk ||
         kind == FaultKind::kFullDisk || kind == FaultKind::kFailingDisk || kind == FaultKind::kDeadDirectory ||
         kind == FaultKind::kStaleDirectory || kind == FaultKind::kForgedDirectory;
}

bool of_relay(FaultKind kind) {
  return kind == FaultKind::kRelayDeath || kind == FaultKind::kRelayStall || kind == FaultKind::kRelaySlow;
}

// No launching process comes up while it lasts.
bool holds_back_launch(FaultKind kind) {
  return kills_launch(kind) || kind == FaultKind::kFullDisk || kind == FaultKind::kFailingDisk;
}

bool of_a_pair(FaultKind kind) {
  return kind == FaultKind::kCut || kind == FaultKind::kPartition || kind == FaultKind::kOneWay;
}

bool by_reset(const Fault& fault) { return fault.strength >= 1; }

std::string text_of(const Fault& fault) {
  std::ostringstream out;
  out << name_of(fault.kind);
  if (!of_launch(fault.kind) && !of_relay(fault.kind)) out << " of peer " << fault.who;
  if (of_a_pair(fault.kind)) out << " and " << fault.other;
  if (fault.strength > 0) out << ", strength " << fault.strength;
  return out.str();
}

// What a process holds that may serve again: one that gave up holds a state that nobody will ever get.
std::optional<std::pair<StageId, Version>> held_by(const Swarm::HostedPeer& process) {
  const bool serves_again = process.alive && process.peer && !process.finished && !process.error;
  return serves_again ? process.peer->held_state() : std::nullopt;
}

}  // namespace

void FaultStrikes::say(const std::string& what) {
  std::ostringstream line;
  line << seconds_of(swarm_.loop().now().time_since_epoch()) << " s: " << what;
  story_.push_back(line.str());
}

bool FaultStrikes::away(std::size_t peer) const {
  return std::any_of(active_.begin(), active_.end(), [&](const Active& a) {
    return a.fault.who == peer && (kills_peer(a.fault.kind) || a.fault.kind == FaultKind::kFreeze);
  });
}

bool FaultStrikes::launch_away() const {
  return swarm_.launch() == nullptr || std::any_of(active_.begin(), active_.end(), [](const Active& a) {
           return kills_launch(a.fault.kind) || a.fault.kind == FaultKind::kLaunchFreeze;
         });
}

// A dead process has no state, so the living are those that count.
bool FaultStrikes::may_lose(std::size_t peer) const {
  const auto mine = held_by(*swarm_.peers()[peer]);
  if (!mine || swarm_.options().checkpoints) return true;
  for (std::size_t i = 0; i < swarm_.peers().size(); ++i)
    if (const auto other = held_by(*swarm_.peers()[i]);
        i != peer && other && other->first == mine->first && other->second >= mine->second)
      return true;
  return false;
}

bool FaultStrikes::begin(const Fault& fault) {
  if (!strike(fault)) return false;
  ++struck_[fault.kind];
  say(text_of(fault) + (fault.lasting ? " begins for good" : " begins"));
  const TimePoint until = fault.lasting ? TimePoint::max() : swarm_.loop().now() + fault.lasts;
  if (fault.lasts > Duration::zero()) active_.push_back({fault, until});
  apply();
  return true;
}

bool FaultStrikes::strike(const Fault& fault) {
  if (kills_launch(fault.kind) || fault.kind == FaultKind::kLaunchFreeze) return strike_launch(fault.kind);
  if (kills_peer(fault.kind)) {
    if (away(fault.who) || !may_lose(fault.who)) return false;
    swarm_.kill_peer(fault.who, fault.kind == FaultKind::kMachineDeath);
  } else if (fault.kind == FaultKind::kFreeze) {
    if (away(fault.who)) return false;
    swarm_.freeze_peer(fault.who);
  } else if (fault.kind == FaultKind::kCut) {
    swarm_.cut(fault.who, fault.other);
  } else if (fault.kind == FaultKind::kClockJump) {
    jumped_[fault.who] += from_seconds(rng_.chance(0.5) ? fault.strength : -fault.strength);
  } else if (fault.kind == FaultKind::kForgedDirectory) {
    forge_records(static_cast<std::size_t>(fault.strength));
  } else if (of_relay(fault.kind)) {
    return swarm_.network().relays().at(relay_of(swarm_.options())) != nullptr;
  } else if (fault.kind >= FaultKind::kNatFlush) {
    return strike_router(fault);
  }
  return true;
}

// What a change of reach makes of a host is declared: apply_hosts().
bool FaultStrikes::strike_router(const Fault& fault) {
  const Address& who = swarm_.peers()[fault.who]->address;
  SimNetwork& network = swarm_.network();
  if (fault.kind == FaultKind::kNatRenumber) return network.renumber(who);
  if (fault.kind == FaultKind::kNatFlush) network.flush(who, by_reset(fault));
  if (fault.kind == FaultKind::kReachLost) return network.nats().of(who).dialable();
  if (fault.kind == FaultKind::kReachWon) return !network.nats().of(who).dialable();
  return true;
}

bool FaultStrikes::strike_launch(FaultKind kind) {
  if (launch_away()) return false;
  if (kind == FaultKind::kLaunchKill) swarm_.kill_launch_process();
  if (kind == FaultKind::kLaunchPower) swarm_.kill_launch(true);
  if (kind == FaultKind::kLaunchFreeze) swarm_.freeze_launch(true);
  return true;
}

// Records of strangers under the run's keys: noise, honest ones with a bit that is another, and honest ones repeated.
void FaultStrikes::forge_records(std::size_t count) {
  const RunId run{swarm_.run_key().id().bytes};
  for (std::size_t i = 0; i < count; ++i) {
    const bool of_run = rng_.chance(0.3);
    const auto stage = StageId(static_cast<std::uint16_t>(rng_.below(swarm_.options().stages)));
    const std::string key = of_run ? run_key_name(run) : stage_key(run, stage);
    const std::vector<std::string> honest = swarm_.dht().values(key);
    std::string text(1 + rng_.below(kRecordBytesMax), '\0');
    for (char& letter : text) letter = static_cast<char>(rng_.below(256));
    if (!honest.empty() && rng_.chance(0.7)) {
      text = honest[rng_.below(honest.size())];
      if (!text.empty() && rng_.chance(0.5)) text[rng_.below(text.size())] ^= static_cast<char>(1 << rng_.below(7));
    }
    swarm_.dht().inject(key, rng_.next(), text);
  }
}

void FaultStrikes::end(const Fault& fault) {
  say(text_of(fault) + " ends");
  if (kills_peer(fault.kind)) swarm_.restart_peer(fault.who);
  if (fault.kind == FaultKind::kFreeze) swarm_.resume_peer(fault.who);
  if (fault.kind == FaultKind::kLaunchFreeze) swarm_.freeze_launch(false);
}

void FaultStrikes::tend() {
  const std::size_t before = active_.size();
  for (std::size_t i = 0; i < active_.size();) {
    if (active_[i].until > swarm_.loop().now()) {
      ++i;
      continue;
    }
    const Fault fault = active_[i].fault;
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    end(fault);
  }
  if (active_.size() != before) apply();
  if (swarm_.launch() != nullptr && swarm_.finished() && swarm_.launch_error()) {
    ++launch_errors_[swarm_.launch_error()->code];
    say("the launching process ends: " + swarm_.launch_error()->message);
    swarm_.kill_launch_process();
  }
  const bool held_back =
      std::any_of(active_.begin(), active_.end(), [](const Active& a) { return holds_back_launch(a.fault.kind); });
  if (swarm_.launch() == nullptr && !held_back) {
    swarm_.resume_launch();
    say("the launching process resumes");
    apply();
  }
}

bool FaultStrikes::pending() const {
  const auto passes = [](const Active& a) { return a.until != TimePoint::max(); };
  const bool kept_away = std::any_of(active_.begin(), active_.end(),
                                     [&](const Active& a) { return !passes(a) && holds_back_launch(a.fault.kind); });
  return (swarm_.launch() == nullptr && !kept_away) || std::any_of(active_.begin(), active_.end(), passes);
}

std::vector<std::size_t> FaultStrikes::heal_core() {
  std::map<StageId, std::pair<Version, std::size_t>> best, best_dialable;
  for (std::size_t i = 0; i < swarm_.peers().size(); ++i) {
    const auto held = held_by(*swarm_.peers()[i]);
    if (!held) continue;
    for (auto* holders : {&best, &best_dialable}) {
      if (holders == &best_dialable && !nat_of(swarm_.options(), i).dialable()) continue;
      const auto found = holders->find(held->first);
      if (found == holders->end() || found->second.first < held->second) (*holders)[held->first] = {held->second, i};
    }
  }
  std::set<std::size_t> core;
  for (const auto* holders : {&best, &best_dialable})
    for (const auto& [stage, holder] : *holders) core.insert(holder.second);
  // A stage that nobody holds has not begun yet: everybody counts then.
  const bool all = best.size() < swarm_.options().stages;
  for (Active& a : active_) {
    if (of_relay(a.fault.kind)) {
      if (swarm_.options().reach.home_launch || swarm_.options().reach.unreachable >= 1) a.until = swarm_.loop().now();
      continue;
    }
    const bool harms_core = of_a_pair(a.fault.kind) ? core.contains(a.fault.who) && core.contains(a.fault.other)
                                                    : core.contains(a.fault.who);
    if (all || of_launch(a.fault.kind) || harms_core) a.until = swarm_.loop().now();
  }
  tend();
  return {core.begin(), core.end()};
}

std::set<std::uint64_t> FaultStrikes::afflicted() const {
  std::set<std::uint64_t> peers;
  for (const Active& a : active_)
    if (!of_a_pair(a.fault.kind) && !of_launch(a.fault.kind) && !of_relay(a.fault.kind) &&
        a.fault.who < swarm_.peers().size())
      peers.insert(Session::of(swarm_.peers()[a.fault.who]->key.id(), 0).peer_tag);
  return peers;
}

// ---- what the faults under way make of the world ----

void FaultStrikes::apply() {
  apply_hosts();
  apply_pairs();
  apply_relay();
  Duration sync = kHealthySync;
  bool full = false, failing = false, dead = false, stale = false;
  for (const Active& a : active_) {
    if (a.fault.kind == FaultKind::kSlowDisk) sync = std::max(sync, from_seconds(a.fault.strength));
    full |= a.fault.kind == FaultKind::kFullDisk;
    failing |= a.fault.kind == FaultKind::kFailingDisk;
    dead |= a.fault.kind == FaultKind::kDeadDirectory;
    stale |= a.fault.kind == FaultKind::kStaleDirectory;
  }
  swarm_.disk().set_sync_delay(sync);
  swarm_.disk().set_capacity_bytes(full ? 0 : SIZE_MAX);
  swarm_.disk().set_failing(failing);
  swarm_.dht().set_outage(dead);
  swarm_.dht().set_stale(stale);
}

SimHostShape FaultStrikes::shape_of(std::size_t peer) const {
  SimHostShape shape = swarm_.options().shape;
  for (const auto& [fault, until] : active_) {
    if (fault.who != peer) continue;
    if (fault.kind == FaultKind::kJitter) shape.jitter += from_seconds(fault.strength);
    if (fault.kind == FaultKind::kReorder) shape.lag += from_seconds(fault.strength);
    if (fault.kind == FaultKind::kRepeat) shape.repeat_share = std::max(shape.repeat_share, fault.strength);
    if (fault.kind == FaultKind::kFlip) shape.flip_share = std::max(shape.flip_share, fault.strength);
    if (fault.kind == FaultKind::kShapedRate) shape.up_bytes_per_second = shape.down_bytes_per_second = fault.strength;
    if (fault.kind != FaultKind::kLate) continue;
    shape.late_share = kLateShare;
    shape.late = std::max(shape.late, from_seconds(fault.strength));
  }
  return shape;
}

void FaultStrikes::apply_hosts() {
  for (std::size_t i = 0; i < swarm_.peers().size(); ++i) {
    const auto& process = *swarm_.peers()[i];
    swarm_.network().set_shape(process.address, shape_of(i));
    SimNat nat = nat_of(swarm_.options(), i);
    double slowness = 1;
    bool hung = false;
    Duration offset = jumped_.contains(i) ? jumped_.at(i) : Duration::zero();
    for (const auto& [fault, until] : active_) {
      if (fault.who != i) continue;
      if (fault.kind == FaultKind::kSlowDevice) slowness = std::max(slowness, fault.strength);
      if (fault.kind == FaultKind::kClockOffset)
        offset += from_seconds(fault.other % 2 == 0 ? fault.strength : -fault.strength);
      hung |= fault.kind == FaultKind::kHungDevice;
      if (fault.kind == FaultKind::kReachWon) nat.kind = NatKind::kOpen;
      if (fault.kind != FaultKind::kReachLost) continue;
      nat.kind = NatKind::kFirewall;
      nat.resets = by_reset(fault);
    }
    if (nat != swarm_.network().nats().of(process.address)) swarm_.network().nats().set(process.address, nat);
    swarm_.network().host(process.address).set_wall_offset(offset);
    if (!process.device) continue;
    process.device->set_pace(slowed(swarm_.pace_of(i), slowness));
    process.device->set_hung(hung);
  }
}

void FaultStrikes::apply_pairs() {
  std::set<std::pair<Address, Address>> wanted;
  const auto& peers = swarm_.peers();
  for (const auto& [fault, until] : active_) {
    const Address& who = peers[fault.who]->address;
    const bool whole = fault.kind == FaultKind::kPartition || fault.kind == FaultKind::kLaunchPartition;
    if (!whole && fault.kind != FaultKind::kOneWay && fault.kind != FaultKind::kLaunchOneWay) continue;
    const Address other = of_a_pair(fault.kind) ? peers[fault.other]->address : Address(kSimLaunchAddress);
    wanted.emplace(who, other);
    if (whole) wanted.emplace(other, who);
  }
  for (const auto& [from, to] : wanted)
    if (!blocked_.contains({from, to})) swarm_.network().block(from, to);
  for (const auto& [from, to] : blocked_)
    if (!wanted.contains({from, to})) swarm_.network().block(from, to, false);
  blocked_ = wanted;
}

void FaultStrikes::apply_relay() {
  const Address at = relay_of(swarm_.options());
  SimRelay* relay = swarm_.network().relays().at(at);
  if (relay == nullptr) return;
  bool dead = false, silent = false, stalled = false;
  double rate = swarm_.options().reach.relay_bytes_per_second;
  for (const auto& [fault, until] : active_) {
    if (fault.kind == FaultKind::kRelayDeath) dead = true, silent = !by_reset(fault);
    stalled |= fault.kind == FaultKind::kRelayStall;
    if (fault.kind == FaultKind::kRelaySlow) rate = std::min(rate, fault.strength);
  }
  if (dead && relay->lives()) swarm_.network().relays().end(at, silent);
  if (!dead && (swarm_.options().reach.home_launch || swarm_.launch() != nullptr))
    begin_relay(swarm_.network(), swarm_.options());
  relay->set_stalled(stalled);
  relay->set_rate(rate);
}

}  // namespace shoal
