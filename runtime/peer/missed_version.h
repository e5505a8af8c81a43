#pragma once
// The version that a serving session must catch up with: the newest one of its stage, committed without it. It moves
// on when a newer one is committed; whoever gets no chunk of it in time, or is overtaken too often, begins a new
// session instead. Value without I/O: the time is handed in.   Thread: loop only.
#include <cstdint>
#include <optional>

#include "common/ids.h"
#include "common/time.h"

namespace shoal {

class MissedVersion {
 public:
  // Then a new session, for whom the authority holds its rounds a while, is the faster way.
  static constexpr std::uint32_t kOvertakenMax = 3;

  // `patience`: how long may pass without a chunk.
  MissedVersion(Version version, const Digest& digest, TimePoint now, Duration patience)
      : patience_(patience), version_(version), digest_(digest), until_(now + patience) {}

  Version version() const { return version_; }
  const Digest& digest() const { return digest_; }

  // The stage is at `version` now; older ones and the same change nothing.
  void aim(Version version, const Digest& digest, TimePoint now);
  // A chunk of it came.
  void flows(TimePoint now);
  // All of it is here: the device decides when it is taken over.
  void arrived() { until_.reset(); }

  bool to_fetch() const { return until_.has_value(); }
  bool overtaken_too_often() const { return overtaken_ > kOvertakenMax; }
  bool too_late(TimePoint now) const { return until_ && now >= *until_; }

 private:
  Duration patience_;
  Version version_;
  Digest digest_;
  std::uint32_t overtaken_ = 0;     // times that a newer one was committed while chunks of this one came
  bool flows_ = false;              // chunks of this one came
  std::optional<TimePoint> until_;  // none: it is here
};

}  // namespace shoal
