#pragma once
// An accepted socket that never waits. What is said leaves as the socket takes it; what is awaited comes whole and not
// a byte more. The owner hears of changes by epoll's edges, so it says what is readable.
//
// Thread: one.   Bounds: kRelayHeldBytes said and not taken yet, what is awaited.
#include <vector>

#include "common/bytes.h"
#include "common/os/posix_file.h"

namespace shoal {

inline constexpr std::size_t kRelayHeldBytes = 64u << 10;

class RelaySocket {
 public:
  // What came is handed on at once; TCP asks while it is silent, and an end that takes nothing for long is over.
  explicit RelaySocket(Descriptor socket);
  int descriptor() const { return socket_.get(); }

  void await(std::size_t bytes) { heard_.clear(), awaited_ = bytes; }
  void await_more(std::size_t bytes) { awaited_ += bytes; }
  enum class Heard { kWhole, kNotYet, kOver };
  Heard hear();
  ByteView heard() const { return heard_; }
  // What came as it is, at most so much; 0: nothing for now. Less than zero: it is over.
  long take(MutableByteView into);

  // False: it is over, or takes nothing while kRelayHeldBytes wait.
  bool say(ByteView bytes);
  bool say_held();
  bool holds() const { return said_ < held_.size(); }
  void say_no_more();  // once nothing is held

  bool readable = false;  // an edge came, and no read has found the end of it
  bool hung_up = false;   // its end, or an error, is to be read

 private:
  Descriptor socket_;
  std::vector<std::uint8_t> heard_, held_;
  std::size_t awaited_ = 0, said_ = 0;
};

}  // namespace shoal
