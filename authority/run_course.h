#pragma once
// How far the run is, as the authority and the rounds of all stages see it: the steps that are logged whole, its
// totals, and its ends.
//
// Thread: loop only.   Borrows: options, port, log, stages.   Bounds: steps that are not done by every stage yet.
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "authority/authority_port.h"
#include "authority/decision_log.h"

namespace shoal {

class StageRounds;

class RunCourse {
 public:
  RunCourse(const AuthorityOptions& options, AuthorityPort& port, const DecisionLog& log,
            const std::vector<std::unique_ptr<StageRounds>>& stages)
      : options_(options), port_(port), log_(log), stages_(stages) {}

  void start() { started_ = true; }
  bool started() const { return started_; }
  bool takes_messages() const { return started_ && !log_.failed(); }
  bool finishing() const { return finishing_; }
  bool ended() const { return ended_; }
  bool is_over() const { return log_.failed() || ended_; }
  bool opens_rounds() const;

  void set_status(const BeatAck& status) { status_ = status; }
  const BeatAck& status() const { return status_; }

  // allreduce: all microbatches of the step are committed.
  void on_step(const Step& step);
  const Step* step_after(StepId done) const;  // the first logged step behind this one; null: none yet

  void finish(std::function<void()> done);   // Authority::finish
  void give_up(std::function<void()> done);  // Authority::give_up
  void check_finished();                     // a round was decided: finish() may have nothing left to wait for
  // `members` have not said Goodbye to it; it is told to `reachable`.
  void end(const std::string& reason, std::set<Session> members, const std::set<PeerId>& reachable);
  void tell_end(const PeerId& peer) const { port_.send(peer, end_); }  // REQUIRES: ended()
  std::set<Session>& unheard() { return unheard_; }
  const std::set<Session>& unheard() const { return unheard_; }

 private:
  const AuthorityOptions& options_;
  AuthorityPort& port_;
  const DecisionLog& log_;
  const std::vector<std::unique_ptr<StageRounds>>& stages_;
  bool started_ = false, ended_ = false, finishing_ = false;
  std::function<void()> finished_;
  End end_;  // once ended_
  std::set<Session> unheard_;
  std::map<StepId, Step> steps_;  // not done by every stage when the newest came
  BeatAck status_;
};

}  // namespace shoal
