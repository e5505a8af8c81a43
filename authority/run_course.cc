#include "authority/run_course.h"

#include <algorithm>
#include <utility>

#include "authority/membership.h"
#include "authority/stage_rounds.h"

namespace shoal {

// While it finishes, rounds open as long as somebody waits for them: what none secured by then is about to be named
// lost.
bool RunCourse::opens_rounds() const { return takes_messages() && !ended_ && (!finishing_ || finished_); }

void RunCourse::on_step(const Step& step) {
  const auto done = [&](StepId id) {
    return std::ranges::all_of(stages_, [&](const auto& stage) { return stage->line().step_done >= id; });
  };
  std::erase_if(steps_, [&](const auto& entry) { return done(entry.first); });
  if (done(step.step) || step.step.value == 0) return;
  steps_.emplace(step.step, step);
  for (const auto& stage : stages_) stage->maybe_open();
}

const Step* RunCourse::step_after(StepId done) const {
  const auto at = steps_.upper_bound(done);
  return at == steps_.end() ? nullptr : &at->second;
}

void RunCourse::finish(std::function<void()> done) {
  finishing_ = true;
  finished_ = std::move(done);
  for (const auto& stage : stages_) stage->want_last();
  check_finished();
}

void RunCourse::give_up(std::function<void()> done) {
  finishing_ = true;
  finished_ = std::move(done);
  for (const auto& stage : stages_) stage->give_up();
  check_finished();
}

void RunCourse::check_finished() {
  if (!finished_ || !log_.idle()) return;
  for (const auto& stage : stages_) stage->tend_last();
  if (std::ranges::all_of(stages_, [](const auto& stage) { return stage->finished(); }))
    std::exchange(finished_, nullptr)();
}

void RunCourse::end(const std::string& reason, std::set<Session> members, const std::set<PeerId>& reachable) {
  ended_ = true;
  end_ = End{reason, port_.sign(end_text(options_.run, reason))};
  unheard_ = std::move(members);
  for (const PeerId& peer : reachable) tell_end(peer);
}

}  // namespace shoal
