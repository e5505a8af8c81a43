#include "runtime/peer/missed_version.h"

#include <algorithm>
#include <utility>

namespace shoal {

void MissedVersion::aim(Version version, const Digest& digest) {
  if (version <= newest_.version) return;
  newest_ = {version, digest};
  if (!until_ || (flows_ && (!may_turn_ || share_ >= kLesserPart))) return;
  if (flows_) may_turn_ = false;
  flows_ = false;
  share_ = 0;
  fetched_ = newest_;
}

void MissedVersion::flows(TimePoint now, double share) {
  flows_ = true;
  share_ = share;
  until_ = now + patience_;
}

void MissedVersion::is_made(TimePoint now) {
  if (until_ && now < made_until_) until_ = std::max(*until_, now + patience_);
}

bool MissedVersion::go_on(TimePoint now) {
  if (newest_.version <= fetched_.version) return false;
  fetched_ = newest_;
  flows_ = false;
  share_ = 0;
  may_turn_ = true;
  until_ = now + patience_;
  made_until_ = now + kMakingMax;
  ++overtaken_;
  return true;
}

bool MissedVersion::turn(TimePoint now) { return flows_ && go_on(now); }

}  // namespace shoal
