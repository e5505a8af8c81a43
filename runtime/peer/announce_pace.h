#pragma once
// When a peer's record in the directory is made anew: every kPeriod, and before that when it has news (another version,
// a first rate): the first of each kind in a session at once, so that who looks after a join sees it work; later ones
// not within kPause of the record before. Value; pure.
#include <optional>

#include "common/ids.h"
#include "common/time.h"
#include "dht/record.h"

namespace shoal {

class AnnouncePace {
 public:
  static constexpr Duration kPeriod = kRecordPeriod, kPause = 5s;

  bool due(TimePoint now, Version version, double rate) const {
    if (!told_at_ || now - *told_at_ >= kPeriod) return true;
    const bool moved = version != version_, measured = rate > 0 && rate_ == 0;
    if ((moved && !ever_moved_) || (measured && !ever_measured_)) return true;
    return (moved || measured) && now - *told_at_ >= kPause;
  }
  void told(TimePoint now, Version version, double rate) {
    ever_moved_ = ever_moved_ || (told_at_ && version != version_);
    ever_measured_ = ever_measured_ || rate > 0;
    told_at_ = now;
    version_ = version;
    rate_ = rate;
  }

 private:
  std::optional<TimePoint> told_at_;
  Version version_;
  double rate_ = 0;
  bool ever_moved_ = false, ever_measured_ = false;
};

}  // namespace shoal
