#pragma once
// How the run stands, as the directory is told it (dht/peer_directory.h, StandingRecord): its state and since when,
// its figures, which members stand on the signed list and which stood there lately. Value without I/O: facts and times
// are handed in.   Thread: loop only.   Bounds: kGoneMax sessions that are gone; those of RecentRate.
#include <deque>
#include <tuple>
#include <vector>

#include "authority/authority.h"
#include "dht/peer_directory.h"
#include "metrics/recent_rate.h"

namespace shoal {

class Standing {
 public:
  static constexpr std::size_t kGoneMax = 16;
  static constexpr Duration kGoneTold = std::chrono::minutes(10);
  static constexpr Duration kQuiet = 5s;  // a member without a beat for so long is news

  struct Stage {
    StageId stage;
    std::size_t serving = 0;
    bool secured = false;
    bool stranded = false;  // all that serve there reach nobody of the next one
    std::vector<Session> last_members{};
  };
  struct Facts {
    bool begun = false;  // something was committed, in this life or before
    bool finishing = false, ended = false;
    std::vector<Stage> stages;
    std::vector<MemberLife> members;
  };
  // True: it stands otherwise than at the last look, and the directory should hear of it soon.
  bool look(Facts facts, TimePoint now, WallTime wall);
  void on_progress(std::uint64_t targets, double loss, std::uint64_t step, TimePoint now);
  void on_session_over(const Session& session, StageId stage, TimePoint now);
  // As of the last look; to `figures` it adds step, loss and rate. The caller fills in run, sequence and expiry.
  StandingRecord record(TimePoint now, LaunchFigures figures = {}) const;

 private:
  struct Gone {
    Session session;
    StageId stage;
    TimePoint at{};
  };
  using Places = std::vector<std::tuple<std::uint64_t, StageId, MemberRow::Place, bool>>;
  void decide_state(WallTime wall);
  std::optional<double> rate(TimePoint now) const;  // none: fewer than two samples

  Facts facts_;
  Places places_;
  RunState state_ = RunState::kWaiting;
  std::optional<WallTime> since_;
  std::optional<StageId> stage_;
  bool stranded_ = false;
  std::deque<Gone> gone_;
  RecentRate rate_{kRateWindow};  // of targets
  TimePoint progressed_at_{};
  bool measured_ = false;  // two steps were made, or more
  std::optional<double> loss_;
  std::uint64_t step_ = 0;
};

}  // namespace shoal
