#pragma once
// Cuts connections that send bytes without ever finishing a message. libzmq's limits count whole messages: a message of
// endless parts passes them all and grows in its memory, before and after the key check. The kernel's own count of
// received bytes tells.
//
// Thread: the wire's.   Borrows: descriptors that libzmq owns; they are only asked and shut down, never closed, and
// only while their remote address is the one seen when they were opened.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/time.h"
#include "transport/wire.h"

namespace shoal {

// "address:port" of the other end of a descriptor; "?" when it has none any more.
std::string remote_text(int fd);

// Bounds: kStrangerBytesMax, kMessagelessBytesMax.
class ByteWatchdog {
 public:
  void opened(int fd);
  void closed(int fd);
  // A whole message came. `greeted`: the sender proved who it is; until then it may send kStrangerBytesMax in all.
  void message(int fd, bool greeted);
  // Ends the connection: its last messages may be lost.
  void cut(int fd);
  // Call every kPeriod. Says who was cut.
  struct CutOff {
    int fd;
    std::string remote;  // its address
    bool greeted;
  };
  std::vector<CutOff> check();
  bool watches(int fd) const { return watched_.contains(fd); }
  bool idle() const { return watched_.empty(); }
  std::size_t size() const { return watched_.size(); }

  static constexpr Duration kPeriod = 50ms;

 private:
  struct Watched {
    std::vector<std::uint8_t> remote;  // sockaddr
    std::uint64_t baseline = 0;
    bool greeted = false;
    bool progressed = false;
    bool cut = false;
  };
  std::map<int, Watched> watched_;
};

class RefusalBook;
void note_cut_off(RefusalBook& book, const std::vector<ByteWatchdog::CutOff>& cut_off);

}  // namespace shoal
