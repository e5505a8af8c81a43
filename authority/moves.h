#pragma once
// Which members are asked to serve another stage, and how far each is. A move is a session that leaves in order and a
// new one of the same peer that joins for the stage it was asked for: killed at any moment it is a peer that died. The
// wish is in memory alone; after a restart of the authority it is forgotten, and what was begun goes on.
//
//   asked      its BeatAcks say so; kBegins without a word that it leaves: it cannot, and rests
//   leaving    it secures what it counted, until its session is over; kLeavesMax without that: forgotten, and it rests
//   left       its session is over in order; kReturns without a new one: gone
//   there      it joined for the stage, and fetches its state, until it serves, or its session is over; kArrivesMax
//              without either: forgotten, and it rests
//
// What was measured of a mover counts until it is measured anew, else its way would look like a change of the swarm.
// A stage that somebody is on the way to, or still to leave, is closed to others; a peer that moved rests.
// Value without I/O: the time is handed in.   Thread: loop only.   Bounds: a peer of the run each, kRestsMax rests.
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "authority/move_plan.h"
#include "common/ids.h"
#include "common/time.h"

namespace shoal {

class Moves {
 public:
  static constexpr Duration kLookEvery = 5s;  // and a move is asked for when two looks in a row want it
  static constexpr Duration kBegins = 10s;
  static constexpr Duration kLeavesMax = 120s;
  static constexpr Duration kReturns = 20s;
  static constexpr Duration kArrivesMax = 600s;
  static constexpr Duration kSettled = 10s;       // before it a member's first jobs are most of what its beats tell
  static constexpr Duration kRest = 60s;          // behind a move
  static constexpr Duration kRestRefused = 600s;  // of one that was asked and did not do it
  static constexpr std::size_t kRestsMax = 4096;

  bool look_due(TimePoint now) const { return now >= next_look_; }
  // `stages` and `workers` as they are; closed stages, peers on their way and those that rest are seen to here. A move
  // that is new: its peer is asked from now on.
  std::optional<PlannedMove> look(std::vector<StageLoad> stages, std::vector<Worker> workers,
                                  const MoveOptions& options, TimePoint now);
  // Counts each mover where it goes to, as fast as it was; without those of `peer`.
  void place(std::vector<Worker>& workers, const PeerId& peer) const;
  // The stage that the session is asked to serve; none: nothing is asked of it.
  std::optional<StageId> asked(const PeerId& peer, const Session& session) const;

  void on_leaving(const PeerId& peer, const Session& session, TimePoint now);
  void on_joined(const PeerId& peer, const Session& session, StageId stage, TimePoint now);
  void on_serving(const PeerId& peer, const Session& session, TimePoint now);
  void on_over(const PeerId& peer, const Session& session, bool left, TimePoint now);

 private:
  enum class Phase : std::uint8_t { kAsked, kLeaving, kLeft, kThere };
  struct Move {
    Session session;  // of the stage it goes from, then that of the one it goes to
    StageId from, to;
    Phase phase = Phase::kAsked;
    TimePoint since{};
    std::optional<double> speed{};  // as it was measured where it comes from
  };
  struct Rest {
    TimePoint until{};
    std::optional<double> speed{};
  };
  void expire(TimePoint now);
  static Duration patience_of(Phase phase);
  void forget(std::map<PeerId, Move>::iterator move, TimePoint rests_until);
  std::optional<double> known_speed(const PeerId& peer) const;

  std::map<PeerId, Move> moves_;
  std::map<PeerId, Rest> rests_;
  std::optional<std::pair<StageId, StageId>> wanted_;  // by the look before
  TimePoint next_look_{};
};

}  // namespace shoal
