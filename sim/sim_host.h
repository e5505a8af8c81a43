#pragma once
// A simulated machine with one process on it: its view of the loop can be frozen (SIGSTOP) and killed (SIGKILL).
//
// Frozen: nothing of it runs; what was due and what was posted waits, in order, until resume(). Killed: nothing of it
// runs ever again; tasks are destroyed unrun. Thread: the simulation's.   Borrows: the simulated loop.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/event_loop.h"

namespace shoal {

class SimHost {
 public:
  SimHost(EventLoop& base, std::string name);
  ~SimHost();
  SimHost(const SimHost&) = delete;
  SimHost& operator=(const SimHost&) = delete;

  // What the process on this host is built on. Valid as long as the host.
  EventLoop& loop() { return view_; }
  const std::string& name() const { return name_; }
  bool frozen() const { return core_->frozen; }
  bool killed() const { return core_->killed; }

  void freeze();
  void resume();
  void kill();
  // How far its wall clock stands from the true one. Only wall time: a monotonic clock does not jump.
  void set_wall_offset(Duration offset) { core_->wall_offset = offset; }
  // From now on cpu() is the time of this thread's processor that the process's callbacks took. Nothing depends on it.
  void meter_cpu() { core_->metered = true; }
  Duration cpu() const { return core_->cpu; }

 private:
  // Shared with the tasks given to the base loop, which outlive the host.
  struct Core {
    explicit Core(EventLoop& base) : base(base) {}
    EventLoop& base;
    bool frozen = false;
    bool killed = false;
    bool metered = false;
    Duration wall_offset{}, cpu{};
    std::map<std::uint64_t, std::function<void()>> tasks;  // by number; absent = ran or cancelled
    std::map<std::uint64_t, TimerId> timers;               // of the base loop
    std::vector<std::uint64_t> held;                       // due while frozen
    std::uint64_t next = 1;
    void run(std::uint64_t number);
  };

  class View final : public EventLoop {
   public:
    explicit View(std::shared_ptr<Core> core) : core_(std::move(core)) {}
    TimePoint now() const override { return core_->base.now(); }
    WallTime wall() const override { return core_->base.wall() + core_->wall_offset; }
    void post(std::function<void()> task) override;
    TimerId at(TimePoint when, std::function<void()> task) override;
    void cancel(TimerId timer) override;

   private:
    std::shared_ptr<Core> core_;
  };

  std::string name_;
  std::shared_ptr<Core> core_;
  View view_;
};

}  // namespace shoal
