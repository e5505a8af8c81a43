#pragma once
// A TCP connection to a relay, which never waits: what is said leaves as the socket takes it, and what is awaited comes
// whole and not a byte more. Behind a relay's verdict the bytes are the other end's.
//
// Thread: one.   Bounds: what is said is the caller's; heard is what was awaited.
#include <cstdint>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "common/host_port.h"
#include "common/os/posix_file.h"
#include "common/result.h"
#include "transport/zmq/errand.h"

namespace shoal {

class RelayTalk {
 public:
  // ERRORS: kUnreachable.
  static Result<RelayTalk> begin(const HostPort& relay);
  void say(ByteView bytes) { unsent_.insert(unsent_.end(), bytes.begin(), bytes.end()); }
  bool all_said() const { return unsent_.empty(); }
  void await(std::size_t more) { awaited_ = heard_.size() + more; }
  bool whole() const { return heard_.size() == awaited_; }
  ByteView heard() const { return heard_; }
  void forget() { heard_.clear(); }  // before the next await()
  // Sends and reads what can be. ERRORS: kUnreachable: it is over, with the reason.
  Status turn();
  SocketWait waits() const;
  Descriptor take_socket() { return std::move(socket_); }

 private:
  Descriptor socket_;
  std::vector<std::uint8_t> unsent_, heard_;
  std::size_t awaited_ = 0;
};

}  // namespace shoal
