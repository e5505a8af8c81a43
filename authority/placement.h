#pragma once
// Where members are wanted: which stage a joiner gets, and which member is asked to serve another one. Shows the
// planner (planner.h, move_plan.h) the swarm as the authority knows it.
//
// Thread: loop only.   Borrows: options, port, loop, book, detector, stages.   Bounds: those of Moves.
#include <memory>
#include <span>
#include <vector>

#include "authority/authority_port.h"
#include "authority/failure_detector.h"
#include "authority/member_book.h"
#include "authority/moves.h"
#include "authority/planner.h"
#include "authority/stage_rounds.h"

namespace shoal {

class Placement {
 public:
  Placement(const AuthorityOptions& options, AuthorityPort& port, EventLoop& loop, const MemberBook& book,
            const FailureDetector& detector, const std::vector<std::unique_ptr<StageRounds>>& stages)
      : options_(options), port_(port), loop_(loop), book_(book), detector_(detector), stages_(stages) {}

  // What its owner asks for comes before what the layout has. ERRORS: as choose_stage().
  Result<StageChoice> of_joiner(const PeerId& peer, const JoinRequest& request) const;
  void look();  // each tick, while the run trains: whether a move would pay
  Moves& moves() { return moves_; }

 private:
  std::vector<StageLoad> loads() const;
  // The members that serve or are on the way there, without those of this peer. `stages`: loads().
  std::vector<Worker> workers_without(const PeerId& peer, std::span<const StageLoad> stages) const;
  std::vector<StageSupply> supply_without(const PeerId& peer) const;

  const AuthorityOptions& options_;
  AuthorityPort& port_;
  EventLoop& loop_;
  const MemberBook& book_;
  const FailureDetector& detector_;
  const std::vector<std::unique_ptr<StageRounds>>& stages_;
  Moves moves_;
};

}  // namespace shoal
