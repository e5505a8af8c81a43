#pragma once
// A relay: listens at one port, takes registrations, calls and answers there (relay_words.h), and carries the bytes of
// what it joined. It dials nobody and has no key. Of what it carries it holds kRelayHeldBytes (relay_socket.h) a
// direction where an end reads slower than the other one writes, which is then not read any more.
//
// Thread: start(), follow(), stats() and the destructor from any; one thread of its own does the rest and waits in
// epoll. The destructor ends every connection.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/host_port.h"
#include "common/result.h"
#include "common/time.h"
#include "transport/relay/relay_words.h"

namespace shoal {

inline constexpr std::size_t kRelayHalfOpenMax = 1024, kRelayHalfOpenPerPartyMax = 64;  // they have not said what for
inline constexpr Duration kRelayWordTime = 5s;                                          // in which they say it
inline constexpr Duration kRelayLingerTime = 500ms;  // an end whose other end is over: its last bytes are sent

struct RelayOptions {
  double bytes_per_second = 0;  // of all that is carried; 0: no cap
  bool any_run = false;         // also runs that are told of by their keys over the wire
};

struct RelayStats {
  std::size_t runs = 0, homes = 0, pairs = 0, half_open = 0;
  std::uint64_t carried_bytes = 0;                       // each once
  std::array<std::uint64_t, kRelayVerdicts> verdicts{};  // so far, by code
  std::uint64_t refused() const;                         // all but kJoined
};

class Relay {
 public:
  // Port 0: any free one. ERRORS, with a HINT: kInput (no address), kBusy (the port is taken), kIo.
  static Result<std::unique_ptr<Relay>> start(const HostPort& listen, const RelayOptions& options);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  const HostPort& listening_at() const { return listening_at_; }
  // From now on this run is served, for these members; `open` may be called by strangers. Replaces what was said of the
  // run before: a member that is no more on it is cut off.
  void follow(const RunId& run, const PeerId& open, std::vector<PeerId> members);
  RelayStats stats() const;  // a quarter of a second old at most

 private:
  class Thread;
  Relay(HostPort listening_at, std::unique_ptr<Thread> thread);
  const HostPort listening_at_;
  const std::unique_ptr<Thread> thread_;
};

}  // namespace shoal
