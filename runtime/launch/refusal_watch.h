#pragma once
// What the members of the stages refuse, as their beats say it: lines of it for people, and whether anything under way
// can still come to something.
//
// A microbatch is refused when kTimes passes of it failed by their numbers at two members of a stage, or at the only
// one that it has, since something was committed: one bad replica refuses nothing alone. All is refused when more than
// half of what is open is, or as many as a beat names, from the lowest on: higher ones may wait for room behind them.
//
// Value without I/O; the time is passed in. Thread: loop only. Bounds: limits::kRefusedMax words a member.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "authority/authority_port.h"
#include "common/log_throttle.h"
#include "router/commit_book.h"
#include "runtime/config/config.h"

namespace shoal {

class RefusalWatch {
 public:
  static constexpr std::uint32_t kTimes = 3;

  // Call often. Returns the lines that are due: one a stage and cause in LogThrottle::kInterval, and one when all is
  // refused. From then on the run has `patience` for something to be committed.
  std::vector<std::string> take(const std::vector<StageStatus>& stages, const CommitBook& book, Duration patience,
                                TimePoint now);
  bool hopeless(TimePoint now) const { return until_ && now >= *until_; }
  const std::string& all() const { return all_; }  // what is so while all is refused
  // Failed passes by stage and cause.
  const std::map<std::pair<StageId, std::string>, std::uint64_t>& passes() const { return passes_; }

 private:
  struct Word {
    StageId stage;
    RefusedMicrobatch said;
    std::uint32_t before = 0;  // `said.times` when something was committed last
  };
  // Which stage refuses it and why; empty: none does.
  std::string refusal_of(std::uint64_t serial, const std::vector<StageStatus>& stages) const;
  std::string refusal_of_all(const std::vector<StageStatus>& stages, const CommitBook& book) const;  // of the lowest

  std::map<std::uint64_t, std::map<Session, Word>> words_;
  std::map<std::pair<StageId, std::string>, std::uint64_t> passes_;
  std::uint64_t committed_ = 0;
  std::string all_;
  std::optional<TimePoint> until_;
  LogThrottle said_;
};

// Which options keep the run's numbers smaller or hold larger ones: the end of a HINT.
std::string smaller_numbers_text(const RunConfig& config);

}  // namespace shoal
