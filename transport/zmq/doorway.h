#pragma once
// The TCP connections that others made to the two listeners, by their descriptors: how many are kept of those that have
// not greeted, how often an address may come, and which are cut since they send without end. What came over a relay
// counts as from the relay's address.
//
// Thread: the wire's.   Borrows: the book; descriptors that libzmq owns (byte_watchdog.h).   Bounds:
// connection_bounds.h.
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "transport/address_pace.h"
#include "transport/crowd.h"
#include "transport/limits.h"
#include "transport/refusal_book.h"
#include "transport/zmq/byte_watchdog.h"
#include "transport/zmq/connection_bounds.h"

namespace shoal {

class Doorway {
 public:
  // "host:port" of the relay behind what comes from a remote address ("host:port"); empty: none is.
  using RelayBehind = std::function<std::string(const std::string& remote)>;
  Doorway(const ConnectionBounds& bounds, RefusalBook& refusals, RelayBehind relay_behind);

  void opened(Lane lane, int fd, TimePoint now);
  // The other end proved its key; message(): a whole message came behind that.
  void greeted(Lane lane, int fd);
  void message(Lane lane, int fd) { watchdog(lane).message(fd, true); }
  void closed(Lane lane, int fd);
  void cut(Lane lane, int fd) { watchdog(lane).cut(fd); }
  void cut_at(TimePoint when, Lane lane, int fd) { cut_later_.push_back({when, lane, fd}); }  // a reason leaves before
  void check(TimePoint now);  // every ByteWatchdog::kPeriod

  bool holds(Lane lane, int fd) const { return watchdogs_[static_cast<std::size_t>(lane)].watches(fd); }
  std::size_t size() const { return watchdogs_[0].size() + watchdogs_[1].size(); }
  bool has_times() const { return size() > 0 || !cut_later_.empty(); }

  std::string relay_of(int fd) const;  // "host:port"; empty: it came by itself
  std::string party_of(int fd) const;  // whose address it counts for

 private:
  ByteWatchdog& watchdog(Lane lane) { return watchdogs_[static_cast<std::size_t>(lane)]; }
  Crowd& ungreeted(Lane lane) { return ungreeted_[static_cast<std::size_t>(lane)]; }
  void turn_away(Lane lane, int fd, Refusal cause, const std::string& why);  // it has not greeted

  struct Cut {
    TimePoint when;
    Lane lane;
    int fd;
  };
  const std::size_t accepted_max_;
  RefusalBook& refusals_;
  const RelayBehind relay_behind_;
  std::array<ByteWatchdog, 2> watchdogs_;  // by lane
  std::array<Crowd, 2> ungreeted_;         // by lane; descriptors
  AddressPace pace_{limits::kAcceptedPerAddressSecond, limits::kAcceptedPerAddressBurst};
  std::vector<Cut> cut_later_;
};

}  // namespace shoal
