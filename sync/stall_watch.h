#pragma once
// Whether the bytes of a round still move at a member: slow is not silent. Value without clock; times are handed in.
// Thread: loop only.   Bounds: one counter a member of the round.
#include <algorithm>
#include <cstdint>
#include <map>

#include "common/time.h"
#include "transport/limits.h"

namespace shoal {

class StallWatch {
 public:
  // Still for so long is a stall: four times the longest gap between two moves, or the time of four chunks (or
  // parts, if these are smaller) on the slowest link, between these.
  static constexpr Duration kFloor = 5s, kCeiling = 60s;
  static constexpr int kGaps = 4;
  // A link that moved less between two looks moved nothing: pings and beats go on where frames do not.
  static constexpr std::uint64_t kNoiseBytes = 4096;

  // `part`: bytes of the largest part that travels in the round.
  void start(TimePoint now, std::uint64_t part) {
    moved_at_ = now;
    chunk_ = std::min<std::uint64_t>(part, limits::kChunkBytes);
    longest_gap_ = Duration(0);
    slowest_ = 0;
    seen_.clear();
  }
  // A whole part came.
  void moved(TimePoint now) {
    longest_gap_ = std::max(longest_gap_, now - moved_at_);
    moved_at_ = now;
  }
  // `bytes`: what the link to this member has carried both ways; a new link begins at 0. `rate`: measured, in bytes a
  // second; 0 = not yet.
  void look(std::size_t member, std::uint64_t bytes, double rate, TimePoint now) {
    if (rate > 0) slowest_ = slowest_ > 0 ? std::min(slowest_, rate) : rate;
    const auto [at, first] = seen_.try_emplace(member, bytes);
    if (first) return;
    if (bytes > at->second + kNoiseBytes) moved(now);
    at->second = bytes;
  }
  Duration limit() const {
    const double chunk_s = slowest_ > 0 ? static_cast<double>(chunk_) / slowest_ : 0;
    const Duration gap = std::max<Duration>(longest_gap_, from_seconds(std::min(chunk_s, seconds_of(kCeiling))));
    return std::clamp<Duration>(kGaps * gap, kFloor, kCeiling);
  }
  bool stalled(TimePoint now) const { return now - moved_at_ >= limit(); }

 private:
  TimePoint moved_at_{};
  Duration longest_gap_{0};
  double slowest_ = 0;
  std::uint64_t chunk_ = 0;
  std::map<std::size_t, std::uint64_t> seen_;
};

}  // namespace shoal
