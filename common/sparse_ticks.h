#pragma once
// When to say again that something is still so, where each word is a line that stays: kFirst after it began, and then
// whenever that time has doubled. A value; the time is handed in.   Thread: one at a time.
#include "common/time.h"

namespace shoal {

class SparseTicks {
 public:
  static constexpr Duration kFirst = 10s;

  // `since`: for how long it has been so; less than the last time: it began anew.
  bool due(Duration since) {
    if (since < last_) next_ = kFirst;
    last_ = since;
    if (since < next_) return false;
    while (next_ <= since) next_ *= 2;
    return true;
  }

 private:
  Duration next_ = kFirst, last_{0};
};

}  // namespace shoal
