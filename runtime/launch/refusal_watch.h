#pragma once
// What the members of the stages refuse because their numbers fail, as their beats say it: a line of it for people, and
// whether anything under way can still come to something.
//
// A microbatch is refused when passes of it failed kTimes at two members of a stage, or at the only one that it has,
// since something was committed: one bad replica refuses nothing alone. All is refused when the lower half of what is
// open is, and one more: higher ones may wait for room behind them. What lacks memory, or came in unusable, says
// nothing of the run's numbers.
//
// Value without I/O; the time is passed in. Thread: loop only. Bounds: limits::kRefusedMax words a member.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "authority/authority_port.h"
#include "common/log_throttle.h"
#include "router/commit_book.h"
#include "runtime/config/config.h"
#include "runtime/launch/run_summary.h"

namespace shoal {

class RefusalWatch {
 public:
  static constexpr std::uint32_t kTimes = 3;

  // Call often. Returns the lines that are due, at most one a stage and cause in LogThrottle::kInterval, and one when
  // all is refused: from then on the run has `patience` for something to be committed.
  std::vector<std::string> take(const std::vector<StageStatus>& stages, const CommitBook& book, Duration patience,
                                TimePoint now);
  // All is refused, and the time for it is over: what is so.
  std::optional<std::string> hopeless(TimePoint now) const;
  // Failed passes by stage and cause.
  std::vector<StageRefusals> tally() const;

 private:
  struct Word {
    StageId stage;
    RefusedMicrobatch said;
    std::uint32_t before = 0;  // `said.times` when something was committed last
  };
  // Which stage refuses it and why; empty: none does.
  std::string refusal_of(std::uint64_t serial, const std::vector<StageStatus>& stages) const;
  // The same of the lowest, when all is refused.
  std::string refusal_of_all(const std::vector<StageStatus>& stages, const CommitBook& book) const;

  std::map<std::uint64_t, std::map<Session, Word>> words_;
  std::map<std::pair<StageId, RefusalCause>, std::uint64_t> passes_;
  std::uint64_t committed_ = 0;
  std::string all_;
  std::optional<TimePoint> until_;
  LogThrottle said_;
};

// Which options of the run keep its numbers smaller or hold larger ones: the end of a HINT.
std::string smaller_numbers_text(const RunConfig& config);

}  // namespace shoal
