#pragma once
// Whether the bytes of a round still move at a member: slow is not silent. Value without clock; times are handed in.
// Thread: loop only.   Bounds: one counter a member of the round.
#include <algorithm>
#include <cstdint>
#include <map>

#include "common/time.h"

namespace shoal {

class StallWatch {
 public:
  // Still for so long is a stall: four times the longest gap seen between two moves, between these.
  static constexpr Duration kFloor = 5s, kCeiling = 60s;
  static constexpr int kGaps = 4;
  // A link that moved less between two looks moved nothing: pings and beats go on where frames do not.
  static constexpr std::uint64_t kNoiseBytes = 4096;

  void start(TimePoint now) {
    moved_at_ = now;
    longest_gap_ = Duration(0);
    seen_.clear();
  }
  // A whole part came.
  void moved(TimePoint now) {
    longest_gap_ = std::max(longest_gap_, now - moved_at_);
    moved_at_ = now;
  }
  // `bytes`: what the link to this member has carried both ways; a new link begins at 0.
  void look(std::size_t member, std::uint64_t bytes, TimePoint now) {
    const auto [at, first] = seen_.try_emplace(member, bytes);
    if (first) return;
    if (bytes > at->second + kNoiseBytes) moved(now);
    at->second = bytes;
  }
  Duration limit() const { return std::clamp<Duration>(kGaps * longest_gap_, kFloor, kCeiling); }
  bool stalled(TimePoint now) const { return now - moved_at_ >= limit(); }

 private:
  TimePoint moved_at_{};
  Duration longest_gap_{0};
  std::map<std::size_t, std::uint64_t> seen_;
};

}  // namespace shoal
