#include "sim/fault_plan.h"

#include <algorithm>
#include <cmath>

#include "common/check.h"

namespace shoal {

namespace {

constexpr std::size_t kKindsMin = 4;  // of a seed

bool needs_two(FaultKind kind) {
  return kind == FaultKind::kCut || kind == FaultKind::kPartition || kind == FaultKind::kOneWay;
}

// Evenly over the orders of magnitude: a fault is as often weak as strong.
double between(double low, double high, Rng& rng) {
  if (low <= 0 || high <= low) return low + (high - low) * rng.uniform();
  return low * std::pow(high / low, rng.uniform());
}

std::vector<FaultKind> choose_kinds(const FaultOptions& options, Rng& rng) {
  if (!options.only.empty()) return {options.only.begin(), options.only.end()};
  std::vector<FaultKind> kinds;
  for (const FaultRow& row : fault_table())
    if (row.kind < FaultKind::kNatFlush || (row.kind < FaultKind::kRelayDeath ? options.nat : options.relay))
      kinds.push_back(row.kind);
  rng.shuffle(kinds);
  kinds.resize(kKindsMin + rng.below(kinds.size() - kKindsMin + 1));
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

FaultKind draw_kind(const std::vector<FaultKind>& kinds, Rng& rng) {
  double sum = 0;
  for (const FaultKind kind : kinds) sum += row_of(kind).share;
  double draw = rng.uniform() * sum;
  for (const FaultKind kind : kinds)
    if ((draw -= row_of(kind).share) < 0) return kind;
  return kinds.back();
}

}  // namespace

const std::vector<FaultRow>& fault_table() {
  static const std::vector<FaultRow> table = {
      // kind, name, share, shortest, longest, unbounded, weakest, strongest, beyond, bound
      {FaultKind::kKill, "kill", 3, 500ms, 15s, 60s, 0, 0, 0, ""},
      {FaultKind::kMachineDeath, "machine-death", 2, 500ms, 15s, 60s, 0, 0, 0, ""},
      {FaultKind::kFreeze, "freeze", 3, 500ms, 15s, 60s, 0, 0, 0, ""},
      {FaultKind::kLaunchKill, "launch-kill", 0.7, 500ms, 15s, 60s, 0, 0, 0, ""},
      {FaultKind::kLaunchPower, "launch-power", 0.7, 500ms, 15s, 60s, 0, 0, 0, ""},
      {FaultKind::kLaunchFreeze, "launch-freeze", 0.7, 500ms, 15s, 60s, 0, 0, 0, ""},
      {FaultKind::kSlowDisk, "slow-disk", 1, 1s, 15s, 60s, 0.1, 5, 30, "a sync of 10 s"},
      {FaultKind::kFullDisk, "full-disk", 0.5, 500ms, 10s, 60s, 0, 0, 0, ""},
      {FaultKind::kFailingDisk, "failing-disk", 0.5, 500ms, 10s, 60s, 0, 0, 0, ""},
      {FaultKind::kCut, "cut", 3, 0s, 0s, 0s, 0, 0, 0, ""},
      {FaultKind::kPartition, "partition", 2, 500ms, 15s, 60s, 0, 0, 0, "a lasting cut of one pair stops rounds"},
      {FaultKind::kOneWay, "one-way", 2, 500ms, 15s, 60s, 0, 0, 0, "a lasting cut of one pair stops rounds"},
      {FaultKind::kLaunchPartition, "launch-partition", 1.5, 500ms, 15s, 60s, 0, 0, 0, ""},
      {FaultKind::kLaunchOneWay, "launch-one-way", 1.5, 500ms, 15s, 60s, 0, 0, 0, ""},
      {FaultKind::kJitter, "jitter", 2, 2s, 20s, 60s, 0.01, 0.5, 3, ""},
      {FaultKind::kShapedRate, "rate", 2, 2s, 20s, 60s, 3e3, 1e6, 1e6, ""},
      {FaultKind::kReorder, "reorder", 2, 2s, 20s, 60s, 0.01, 0.5, 3, ""},
      {FaultKind::kLate, "late", 2, 2s, 20s, 60s, 0.1, 3, 30, ""},
      {FaultKind::kRepeat, "repeat", 2, 2s, 20s, 60s, 0.01, 0.3, 1, ""},
      {FaultKind::kFlip, "flip", 1, 1s, 10s, 60s, 0.001, 0.02, 0.3, ""},
      {FaultKind::kSlowDevice, "slow-device", 2, 2s, 20s, 60s, 2, 100, 1000, "a device job of 10 s fences its peer"},
      {FaultKind::kHungDevice, "hung-device", 1, 500ms, 20s, 60s, 0, 0, 0, ""},
      {FaultKind::kClockOffset, "clock-offset", 1, 2s, 20s, 60s, 0.1, 1e5, 1e8, ""},
      {FaultKind::kClockJump, "clock-jump", 1, 0s, 0s, 0s, 0.1, 1e5, 1e8, ""},
      {FaultKind::kDeadDirectory, "dead-directory", 1, 1s, 20s, 60s, 0, 0, 0, ""},
      {FaultKind::kStaleDirectory, "stale-directory", 1, 1s, 20s, 60s, 0, 0, 0, ""},
      {FaultKind::kForgedDirectory, "forged-directory", 1, 0s, 0s, 0s, 1, 64, 1000, ""},
      {FaultKind::kNatFlush, "nat-flush", 2, 0s, 0s, 0s, 0.5, 2, 2, ""},
      {FaultKind::kNatRenumber, "nat-renumber", 1, 0s, 0s, 0s, 0, 0, 0, ""},
      {FaultKind::kReachLost, "reach-lost", 1, 500ms, 15s, 60s, 0.5, 2, 2, ""},
      {FaultKind::kReachWon, "reach-won", 1, 500ms, 15s, 60s, 0, 0, 0, ""},
      {FaultKind::kRelayDeath, "relay-death", 1.5, 500ms, 15s, 60s, 0.5, 2, 2, ""},
      {FaultKind::kRelayStall, "relay-stall", 1, 500ms, 15s, 60s, 0, 0, 0, ""},
      {FaultKind::kRelaySlow, "relay-slow", 1, 2s, 20s, 60s, 3e3, 1e6, 1e6, ""},
  };
  return table;
}

const FaultRow& row_of(FaultKind kind) {
  const FaultRow& row = fault_table().at(static_cast<std::size_t>(kind));
  SHOAL_CHECK(row.kind == kind);
  return row;
}

std::string_view name_of(FaultKind kind) { return row_of(kind).name; }

std::vector<Fault> draw_faults(const FaultOptions& options, std::size_t peers, Rng rng) {
  const std::vector<FaultKind> kinds = choose_kinds(options, rng);
  std::vector<Fault> plan;
  Duration at = options.first_after;
  for (;;) {
    at += from_seconds(rng.exponential(seconds_of(options.mean_between)));
    if (at >= options.last_after) return plan;
    const FaultRow& row = row_of(draw_kind(kinds, rng));
    Fault fault{.kind = row.kind, .at = at};
    fault.lasts = from_seconds(
        between(seconds_of(row.shortest), seconds_of(options.lift_bounds ? row.unbounded : row.longest), rng));
    fault.strength = between(row.weakest, options.lift_bounds ? row.beyond : row.strongest, rng);
    fault.who = rng.below(peers);
    fault.other = peers == 1 ? 0 : (fault.who + 1 + rng.below(peers - 1)) % peers;
    fault.lasting = rng.chance(options.lasting) && row.longest > Duration::zero();
    if (!needs_two(fault.kind) || peers > 1) plan.push_back(fault);
  }
}

}  // namespace shoal
