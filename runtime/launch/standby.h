#pragma once
// Waits beside a launching process until that one is over, to go on with its run. While it waits it writes nothing,
// tells nobody anything and decides nothing: not even that the other one is dead. Only the lock of the run's folder
// says that (run_lock.h). So a process that is merely frozen keeps its run, and of several that wait one gets it.
//
// Thread: loop only.   Borrows: all that it is given.   Bounds: one look at the lock and at the sizes of both logs each
// kLook; one warning for each time that the logs stand still.
#include <cstdint>
#include <string>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "runtime/launch/run_lock.h"

namespace shoal {

class Standby {
 public:
  static constexpr Duration kLook = 100ms;
  // A run whose logs do not grow for so long lacks peers, or its process hangs.
  static constexpr Duration kStill = 60s;

  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_waiting(const std::string& why) = 0;  // once, unless the first look gets the lock; names the holder
    virtual void on_warning(const std::string& line) = 0;
    virtual void on_turn(RunLock lock) = 0;  // the run is this process's; the last call
    // The lock cannot be had at all: kMissing (the folder is gone), kIo; the last call.
    virtual void on_failed(const Error& error) = 0;
  };

  Standby(EventLoop& loop, Storage& storage, std::string folder, std::string holder, Owner& owner);
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  // The first look comes with the loop's next turn.
  void start();

 private:
  void look();
  void watch_logs(const std::string& why);
  std::uint64_t log_bytes() const;

  EventLoop& loop_;
  Storage& storage_;
  const std::string folder_, holder_;
  Owner& owner_;
  bool waits_ = false;   // and said so
  bool warned_ = false;  // of this standstill
  std::uint64_t bytes_ = 0;
  TimePoint grew_{};  // when the logs' sizes last changed, as far as this process saw
  TimerId timer_ = 0;
  Lifetime lifetime_;
};

}  // namespace shoal
