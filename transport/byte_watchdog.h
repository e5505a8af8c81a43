#pragma once
// Cuts connections that send bytes without ever finishing a message. libzmq's limits count whole messages: a message of
// endless parts passes them all and grows in its memory, before and after the key check. The kernel's own count of
// received bytes tells.
//
// Thread: the wire's.   Borrows: descriptors that libzmq owns; they are only asked and shut down, never closed, and
// only while their remote address is the one seen when they were opened.
#include <cstdint>
#include <map>
#include <vector>

#include "common/time.h"
#include "transport/wire.h"

namespace shoal {

class ByteWatchdog {
 public:
  void opened(int fd);
  void closed(int fd);
  // A whole message came. `greeted`: the sender proved who it is; until then it may send kStrangerBytes in all.
  void message(int fd, bool greeted);
  // Ends the connection: its last messages may be lost.
  void cut(int fd);
  // Call every kPeriod. Returns the descriptors that were cut.
  std::vector<int> check();
  bool idle() const { return watched_.empty(); }

  static constexpr Duration kPeriod = 50ms;
  static constexpr std::uint64_t kStrangerBytes = 64u << 10;
  static constexpr std::uint64_t kQuietBytesMax =
      16u << 20;  // socket buffers and libzmq's queue of a peer that is only quick

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

}  // namespace shoal
