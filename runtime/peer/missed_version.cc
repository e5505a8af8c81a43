#include "runtime/peer/missed_version.h"

#include <algorithm>
#include <utility>

namespace shoal {

void MissedVersion::aim(Version version, const Digest& digest) {
  if (version <= newest_.version) return;
  newest_ = {version, digest};
  if (!flows_ && until_) fetched_ = newest_;
}

void MissedVersion::flows(TimePoint now) {
  flows_ = true;
  until_ = now + patience_;
}

void MissedVersion::is_made(TimePoint now) {
  if (until_ && now < made_until_) until_ = std::max(*until_, now + patience_);
}

bool MissedVersion::go_on(TimePoint now) {
  if (newest_.version <= fetched_.version) return false;
  fetched_ = newest_;
  flows_ = false;
  until_ = now + patience_;
  made_until_ = now + kMakingMax;
  ++overtaken_;
  return true;
}

bool MissedVersion::turn(TimePoint now) { return flows_ && go_on(now); }

}  // namespace shoal
