#pragma once
// What the rounds of a stage (authority/stage_rounds.h) ask of the authority that they belong to. Thread: loop only.
#include <functional>
#include <string>

#include "authority/authority_log.h"
#include "authority/member_state.h"

namespace shoal {

class StageHost {
 public:
  virtual ~StageHost() = default;
  // Logs the decision, and runs `effect` once it is durable; effects run in the order of the calls.
  virtual void decide(const LogRecord& record, std::function<void()> effect) = 0;
  // The session is over: the round that it is in is decided, the list follows. `then` runs after the list left.
  virtual void end_session(const Session& session, const std::string& reason, bool fenced,
                           std::function<void()> then) = 0;
  // The same for what it did: its peer rests before it is admitted again.
  virtual void end_for_misconduct(const Session& session, const std::string& what) = 0;
  // The list shows from now on whether it serves.
  virtual void show_serving(MemberState& member) = 0;
  // allreduce: the first logged step behind this one; null: none yet.
  virtual const Step* step_after(StepId done) const = 0;
  virtual std::uint64_t run_targets() const = 0;
  virtual bool opens_rounds() const = 0;
  virtual bool is_over() const = 0;   // end() was called, or the log failed
  virtual void check_finished() = 0;  // a round was decided: finish() may have nothing left to wait for
};

}  // namespace shoal
