#pragma once
// A run as it stands, read from event files that its processes still write.   Thread: one at a time.
#include <cstdint>
#include <functional>
#include <string>

#include "common/result.h"
#include "events/books/merged_lines.h"
#include "events/books/run_view.h"

namespace shoal {

class FollowedRun {
 public:
  FollowedRun(const std::string& folder, RunFacts facts) : lines_(MergedLines::growing(folder)) {
    view_.set_facts(std::move(facts));
  }

  // What was written since the last call; `now`: seconds since 1970. `progress` is told the number of lines, after
  // each kProgressLines; where it says false, the rest is left for the next call. ERRORS: MergedLines::look_again's.
  static constexpr std::uint64_t kProgressLines = 4096;
  Status read_on(double now, const std::function<bool(std::uint64_t lines)>& progress = {});

  const RunView& view() const { return view_; }
  double told() const { return told_; }  // when the newest line was written; 0: none was read

 private:
  MergedLines lines_;
  RunView view_;
  double told_ = 0;
};

}  // namespace shoal
