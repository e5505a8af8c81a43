#pragma once
// Counts what a wire turns away and says so: at the 1st, 2nd, 4th, ... of each cause, so that nobody can fill the log.
// Thread: any.
#include <atomic>
#include <string>

#include "transport/wire.h"

namespace shoal {

class RefusalBook {
 public:
  // `who`: an address, a key, a peer; `why`: the case at hand.
  void note(Refusal cause, const std::string& who, const std::string& why);
  RefusalCounts counts() const;

 private:
  std::array<std::atomic<std::uint64_t>, kRefusalKinds> counts_{};
};

}  // namespace shoal
