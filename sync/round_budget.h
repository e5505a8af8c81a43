#pragma once
// How long a round may take at most, from what it has to move and what was measured. Pure. That bytes stand still is
// noticed much earlier (sync/stall_watch.h); this ends a round that crawls. Thread: any.
#include <algorithm>
#include <cstdint>

#include "common/time.h"
#include "transport/limits.h"

namespace shoal {

inline constexpr Duration kRoundBudgetFloor = 30s, kRoundBudgetCeiling = 6 * 3600s;
inline constexpr double kRoundRateAssumed = 125'000;  // bytes/s of a member's link, as long as no slower one was seen
inline constexpr int kRoundBudgetMargin = 2;

// What an owner sends in a round, and receives: a piece to each other owner, the sum of its part to each other member.
// A member that owns nothing sends its payload once and gets as much, which is not more.
inline std::uint64_t round_bytes(std::uint64_t payload_bytes, std::size_t members, std::size_t owners) {
  return payload_bytes * (members + owners - 2) / owners;
}

// A part is one transfer; a member alone sends none.
inline std::uint64_t part_bytes(std::uint64_t payload_bytes, std::size_t owners) {
  return (payload_bytes + owners - 1) / owners;
}
inline bool parts_fit(std::uint64_t payload_bytes, std::size_t members, std::size_t owners) {
  return members < 2 || part_bytes(payload_bytes, owners) <= limits::kTransferBytesMax;
}
// As many owners a round has at least when it has more than one member.
inline std::size_t owners_needed(std::uint64_t payload_bytes) {
  const std::uint64_t needed = (payload_bytes + limits::kTransferBytesMax - 1) / limits::kTransferBytesMax;
  return static_cast<std::size_t>(std::max<std::uint64_t>(1, needed));
}
inline std::size_t members_needed(std::uint64_t payload_bytes) {
  return std::max<std::size_t>(2, owners_needed(payload_bytes));
}

// `slowest`: bytes/s of the slowest round seen; 0 = none yet.
inline Duration round_budget(std::uint64_t payload_bytes, std::size_t members, std::size_t owners, double slowest) {
  const double rate = slowest > 0 ? std::min(slowest, kRoundRateAssumed) : kRoundRateAssumed;
  const double seconds = kRoundBudgetMargin * static_cast<double>(round_bytes(payload_bytes, members, owners)) / rate;
  return std::clamp<Duration>(from_seconds(std::min(seconds, seconds_of(kRoundBudgetCeiling))), kRoundBudgetFloor,
                              kRoundBudgetCeiling);
}

}  // namespace shoal
