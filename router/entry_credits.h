#pragma once
// How many microbatches a session takes at a time: what it began with, and less once memory ended in a pass. A value.
// Thread: loop only.
#include <algorithm>
#include <cstddef>
#include <optional>

namespace shoal {

class EntryCredits {
 public:
  // `recovery`: beside them, for what comes for a gradient that waits.
  EntryCredits(std::size_t credits, std::size_t recovery) : credits_(credits), recovery_(recovery) {}

  std::size_t limit(bool recovers) const { return credits_ + (recovers ? recovery_ : 0); }
  // Memory ended in the pass of one of `live` entries. From now on half as many are taken at a time; 0: that was the
  // only one. None: there are still more than may be, since that was halved before.
  std::optional<std::size_t> out_of_memory(std::size_t live) {
    if (live > limit(true)) return std::nullopt;
    credits_ = std::max<std::size_t>(live / 2, 1);
    recovery_ = 0;
    return live / 2;
  }

 private:
  std::size_t credits_, recovery_;
};

}  // namespace shoal
