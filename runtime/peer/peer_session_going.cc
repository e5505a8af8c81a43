// How a session goes: for good, to another stage, for a pause (absence.h).
#include "runtime/peer/peer.h"

namespace shoal {
namespace {

// A last holder that leaves writes it at once, where there is a disk.
std::string what_becomes_of_the_state(const PeerSessionEnvironment& env) {
  const std::string last =
      "this is the last holder of stage " + std::to_string(env.run.spec->stage.value) + "'s state: ";
  if (!env.checkpointing.writes())
    return last + "it goes with us, so this waits for another; again to leave all the same";
  env.checkpointing.hurry();
  return last + "it is written to this disk, and another has " +
         std::to_string(static_cast<int>(seconds_of(Absence::kHolderTime))) + " s to take it";
}

}  // namespace

// How the run stands, and whether the authority wants this peer at another stage. What is counted here is secured
// first, as when it leaves; then a new session of the same process joins there. Killed at any moment it is a peer that
// died.
void PeerSession::on_status(const BeatAck& status) {
  env_.run.status = status;
  if (!stage_peer()) return;
  stage_->peer()->note_run(status.run_targets);
  if (!status.move_to || !env_.absence.may_move(*status.move_to) || *status.move_to == env_.run.spec->stage ||
      !env_.state.is(PeerPhase::kServing) || env_.options.wish || env_.options.once || membership_->last_holder())
    return;
  const StageId to = *status.move_to;
  const auto spec = env_.run.spec_of(to);
  if (!spec) return;
  const std::string there = "stage " + std::to_string(to.value);
  if (const auto fits = room_for_stage(*spec); !fits.ok()) {
    env_.absence.cannot_serve(to);
    return env_.owner.on_notice("asked to move to " + there +
                                ", which this machine cannot serve: " + fits.error().message);
  }
  env_.absence.move(env_.process.loop.now(), to);
  begin_going("moving to " + there + ", where the run is weakest: no new microbatches here, ", "");
}

void PeerSession::leave() {
  if (stage_peer() == nullptr) return env_.owner.finish("left at once", std::nullopt);
  if (env_.absence.is(AbsencePhase::kLeaving)) {
    if (env_.absence.leave_at_once(holds_alone() && env_.checkpointing.writes() &&
                                   !env_.checkpointing.has(env_.run.spec->stage, stage_peer()->version())))
      return env_.owner.finish("left at once", std::nullopt);
    return env_.owner.on_notice("the stage's state is written to the disk first (again to go without)");
  }
  const AbsencePhase before = env_.absence.phase();
  env_.absence.leave(env_.process.loop.now());
  if (before == AbsencePhase::kHere) return begin_going("leaving: no new microbatches, ", " (again to go at once)");
  const std::string instead = before == AbsencePhase::kMoving ? "for another stage" : "for a pause";
  env_.owner.on_notice("leaving, and not " + instead + " (again to go at once)");
}

void PeerSession::begin_going(const std::string& line, const std::string& hint) {
  stage_->peer()->leave();
  membership_->beat_now();
  announce();
  env_.owner.on_notice(line + stage_peer()->waiting_for() + " to settle" + hint);
  check_going();
}

void PeerSession::check_going() {
  const std::uint64_t settled = stage_peer()->status().settled_targets;
  const auto waited_for = [&] {
    if (membership_->last_holder()) return std::string("another peer to take the stage's state");
    if (!env_.state.is(PeerPhase::kLeaving)) return stage_peer()->waiting_for();
    if (settled == 0) return std::string("the authority's goodbye");
    return "a round that secures " + std::to_string(settled) + " targets";
  };
  if (transport_.remote(authority_)) env_.state.because(env_.absence.text() + ": waiting for " + waited_for());
  const Absence::Step step = env_.absence.next(
      env_.process.loop.now(), {.last_holder = holds_alone(),
                                .quiet = stage_peer()->quiet(),
                                .asked = env_.state.is(PeerPhase::kLeaving),
                                .held_up = !transport_.remote(authority_) || stage_peer()->in_round(),
                                .away = !transport_.remote(authority_),
                                .on_disk = env_.checkpointing.has(env_.run.spec->stage, stage_peer()->version())});
  if (step.tell_last && env_.absence.is(AbsencePhase::kMoving))
    return env_.owner.end_session("it stays: it is the last holder of the stage's state");
  if (step.tell_last && env_.absence.is(AbsencePhase::kPausing))
    env_.owner.on_warning("this is the last holder of stage " + std::to_string(env_.run.spec->stage.value) +
                          "'s state, which is kept in memory: the run waits until this machine is resumed");
  else if (step.tell_last)
    env_.owner.on_notice(what_becomes_of_the_state(env_));
  if (step.ask) {
    env_.state.move(PeerPhase::kLeaving, env_.state.reason());
    membership_->leave(settled > 0);
  }
  if (!step.give_up) return;
  const std::string how = env_.absence.give_up();
  if (env_.absence.is(AbsencePhase::kLeaving)) return env_.owner.finish(how, std::nullopt);
  membership_->leave_at_once();
  env_.owner.end_session(how);
}

void PeerSession::on_goodbye() {
  if (!env_.absence.goes() || env_.absence.is(AbsencePhase::kLeaving)) return env_.owner.finish("left", std::nullopt);
  env_.owner.end_session(env_.absence.let_go());
}

}  // namespace shoal
