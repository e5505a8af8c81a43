#include "runtime/peer/missed_version.h"

#include <utility>

namespace shoal {

void MissedVersion::aim(Version version, const Digest& digest, TimePoint now) {
  if (version <= version_) return;
  version_ = version;
  digest_ = digest;
  if (std::exchange(flows_, false)) ++overtaken_;
  if (!until_) until_ = now + patience_;
}

void MissedVersion::flows(TimePoint now) {
  flows_ = true;
  until_ = now + patience_;
}

}  // namespace shoal
