#pragma once
// Two connected TCP sockets joined: what comes from the one goes to the other, both ways. When one end has said all it
// had, that is handed on, and the pipe is over when both have or soon after: a connection of libzmq's never says half.
//
// Thread: one.   Bounds: kHeldBytes a way; nothing is held while the other end takes it.
#include <vector>

#include "common/os/posix_file.h"
#include "transport/zmq/errand.h"

namespace shoal {

class BytePipe {
 public:
  static constexpr std::size_t kHeldBytes = 64u << 10;
  static constexpr Duration kLastBytes = 5s;  // from the first end that has said all

  // Either may still be connecting.
  BytePipe(Descriptor near, Descriptor far) : ends_{std::move(near), std::move(far)} {}
  bool turn(TimePoint now);  // false: over
  SocketWaits waits() const;
  TimePoint due() const { return over_by_; }

 private:
  struct Way {
    std::vector<std::uint8_t> held;
    std::size_t passed = 0;  // of those
    bool over = false;       // its end said all it had, and that is handed on
    bool hung_up = false;    // the same, though what it said waits here
    bool holds() const { return passed < held.size(); }
  };
  bool move(std::size_t from);  // false: a socket failed

  std::array<Descriptor, 2> ends_;
  std::array<Way, 2> ways_;  // by the end that it comes from
  TimePoint over_by_ = TimePoint::max();
};

}  // namespace shoal
