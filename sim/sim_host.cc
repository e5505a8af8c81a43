#include "sim/sim_host.h"

#include <ctime>
#include <utility>

namespace shoal {

namespace {
Duration thread_cpu() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}
}  // namespace

SimHost::SimHost(EventLoop& base, std::string name)
    : name_(std::move(name)), core_(std::make_shared<Core>(base)), view_(core_) {}

SimHost::~SimHost() { kill(); }

void SimHost::Core::run(std::uint64_t number) {
  timers.erase(number);
  if (killed || !tasks.contains(number)) return;
  if (frozen) {
    held.push_back(number);
    return;
  }
  const auto task = std::move(tasks.extract(number).mapped());
  if (!metered) return task();
  const Duration before = thread_cpu();
  task();
  cpu += thread_cpu() - before;
}

void SimHost::View::post(std::function<void()> task) {
  if (core_->killed) return;
  const std::uint64_t number = core_->next++;
  core_->tasks.emplace(number, std::move(task));
  core_->base.post([core = core_, number] { core->run(number); });
}

TimerId SimHost::View::at(TimePoint when, std::function<void()> task) {
  const std::uint64_t number = core_->next++;
  if (core_->killed) return number;
  core_->tasks.emplace(number, std::move(task));
  core_->timers.emplace(number, core_->base.at(when, [core = core_, number] { core->run(number); }));
  return number;
}

void SimHost::View::cancel(TimerId timer) {
  if (const auto found = core_->timers.find(timer); found != core_->timers.end()) {
    core_->base.cancel(found->second);
    core_->timers.erase(found);
  }
  core_->tasks.erase(timer);  // a held one is skipped at resume
}

void SimHost::freeze() { core_->frozen = true; }

void SimHost::resume() {
  if (!std::exchange(core_->frozen, false)) return;
  for (const std::uint64_t number : std::exchange(core_->held, {})) {
    core_->base.post([core = core_, number] { core->run(number); });
  }
}

void SimHost::kill() {
  core_->killed = true;
  for (const auto& [number, timer] : std::exchange(core_->timers, {})) core_->base.cancel(timer);
  const auto unrun = std::exchange(core_->tasks, {});  // destroyed after the books are in order
  core_->held.clear();
}

}  // namespace shoal
