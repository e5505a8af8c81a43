#pragma once
// How long nothing has come in, and how long that may be by what was measured. Value. Thread: loop only.
#include <algorithm>
#include <cstdint>

#include "authority/patience.h"

namespace shoal {

class Pauses {
 public:
  // `count` so far; `counts`: something could come in now. Call often.
  void note(std::uint64_t count, bool counts, TimePoint now) {
    constexpr double kPauseKept = 0.9;  // of the longest one, whenever something came in
    const bool begun = at_ != TimePoint{};
    if (begun && counts && count == count_) return;
    if (begun && counts) longest_ = std::max<Duration>(now - at_, from_seconds(kPauseKept * seconds_of(longest_)));
    count_ = count;
    at_ = now;
  }
  void begin_anew(TimePoint now) { at_ = now; }
  TimePoint last() const { return at_; }  // when something came in
  // Twice the longest pause lately, at least `least`.
  Duration borne(Duration least) const {
    return std::max<Duration>(least, std::min<Duration>(2 * longest_, kPatienceMax));
  }

 private:
  std::uint64_t count_ = 0;
  TimePoint at_{};
  Duration longest_{};  // lately
};

}  // namespace shoal
