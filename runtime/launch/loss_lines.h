#pragma once
// What is lost, for people: one line a session and cause, with the number of its microbatches. Each of them alone is a
// `lost` event. Value without I/O: the time is handed in.   Thread: loop only.   Bounds: what kPeriod brings.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/time.h"
#include "router/commit_book.h"

namespace shoal {

class LossLines {
 public:
  static constexpr Duration kPeriod = 10s;  // between two lines of one session and cause

  void add(const CommitBook::Listing& listing);
  // The lines that are due: sums of what came since the last of that session and cause.
  std::vector<std::string> take(TimePoint now);
  // All that is left, at the end of the process.
  std::vector<std::string> take_rest();

 private:
  struct Sum {
    StageId stage;
    std::uint64_t microbatches = 0;
    TimePoint next{};
  };
  std::map<std::pair<Session, std::string>, Sum> sums_;
};

}  // namespace shoal
