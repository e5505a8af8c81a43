#pragma once
// One of the many things that the pipe desk's thread does at a time: it has a socket or two, and goes on when one of
// them is ready or its time has come. It never waits, and no error of a socket is more than its own end.
#include <array>
#include <cstdint>

#include "common/time.h"

namespace shoal {

// What a socket is waited for, as epoll_ctl(2) has it; nothing: it is left alone.
struct SocketWait {
  int fd = -1;
  std::uint32_t events = 0;
  bool operator==(const SocketWait&) const = default;
};
using SocketWaits = std::array<SocketWait, 2>;

// Thread: the desk's.
class Errand {
 public:
  virtual ~Errand() = default;
  // Does all that can be done now. False: it is over.
  virtual bool turn(TimePoint now) = 0;
  virtual SocketWaits waits() const = 0;
  // Its next turn, if no socket is ready before.
  virtual TimePoint due() const = 0;
};

}  // namespace shoal
