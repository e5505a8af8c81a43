#pragma once
// What is decided of members: admitted to a stage, shown as serving or not, over. Each is a record of the log; the list
// and what the member is told follow.
//
// Thread: loop only.   Borrows: all that it is made with.   Bounds: those of AdmissionPace.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "authority/admission_pace.h"
#include "authority/authority_port.h"
#include "authority/decision_log.h"
#include "authority/member_book.h"
#include "authority/member_lists.h"
#include "authority/placement.h"
#include "authority/run_course.h"
#include "authority/stage_rounds.h"

namespace shoal {

class MemberDecisions {
 public:
  MemberDecisions(const AuthorityOptions& options, AuthorityPort& port, EventLoop& loop, DecisionLog& log,
                  MemberBook& book, MemberLists& lists, const RunCourse& course,
                  const std::vector<std::unique_ptr<StageRounds>>& stages, Placement& placement)
      : options_(options),
        port_(port),
        loop_(loop),
        log_(log),
        book_(book),
        lists_(lists),
        course_(course),
        stages_(stages),
        placement_(placement) {}

  void on_join(const Remote& from, const JoinRequest& request);
  void on_leave(const Remote& from, const Leave& leave);
  // The list shows from now on whether it serves. To a member that is left out of rounds nothing new is sent: no round
  // may secure it.
  void show_serving(MemberState& member);
  // The list says from now on where it can be dialled.
  void show_reach(const Session& session, const Whereabouts& found);
  // The list names these from now on. ERRORS: as Authority::set_relays.
  Status set_relays(std::vector<RelayPlace> relays);
  // The session is over: the round that it is in is decided, the list follows. `then` runs after the list left.
  void end_session(const Session& session, const std::string& reason, bool fenced, std::function<void()> then);
  // The same for what it did: its peer rests before it is admitted again.
  void end_for_misconduct(const Session& session, const std::string& what);
  MemberList present_list() const;

 private:
  // Its peer is not admitted now though the run has room, and is told why. False: nothing speaks against it.
  bool comes_too_early(const Remote& from);
  void admit(const Remote& from, const JoinRequest& request, const StageChoice& choice);
  void write_reach(const MemberState& member) const;
  void list_member(MemberState& member);  // logs and publishes its present state
  StageRounds& rounds_of(StageId stage) const { return *stages_[stage.value]; }

  const AuthorityOptions& options_;
  AuthorityPort& port_;
  EventLoop& loop_;
  DecisionLog& log_;
  MemberBook& book_;
  MemberLists& lists_;
  const RunCourse& course_;
  const std::vector<std::unique_ptr<StageRounds>>& stages_;
  Placement& placement_;
  AdmissionPace admission_;
};

}  // namespace shoal
