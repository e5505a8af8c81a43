#pragma once
// A wire that sends and takes at most so many bytes a second, over another wire: the part of its line that an owner
// lends (`shoal join --up --down`). It stands below Link, so that rates and queues that links measure are those of the
// line with its caps, and routers and donors know them.
//
//   up     bulk messages wait here, those of connections in equal parts, and go as the cap allows
//   down   bulk messages that came wait here before the listener sees them, and so do the byte credits for them: the
//          other end sends no faster in the long run
//   control goes and comes at once, and is paid for: bulk waits longer, its next message at most BytePace::kDebtMax
//
// Counted is each message with kFramingBytes. Not counted: the headers of TCP and IP, some 3 % of full packets, and
// greetings. What waits when a connection goes down, or is ended, is lost with it.
//
// Thread: loop only.   Borrows: the wire and the loop, which outlive it.
// Bounds: up, a connection, kQueuedBulkBytesMax, then kBusy; down, all connections together, kUnreadBytesMax: beyond
// it the one of which most waits is ended as a flood. Links are kept at much less by byte credits and by line_fill.h.
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "transport/byte_pace.h"
#include "transport/line_caps.h"
#include "transport/refusal_book.h"
#include "transport/wire.h"

namespace shoal {

class CappedWire final : public Wire, private Wire::Listener {
 public:
  static constexpr std::uint64_t kFramingBytes = 42;  // of a message, by encryption and ZeroMQ
  // REQUIRES: a cap.
  CappedWire(Wire& inner, EventLoop& loop, const LineCaps& caps);
  ~CappedWire() override;
  CappedWire(const CappedWire&) = delete;
  CappedWire& operator=(const CappedWire&) = delete;

  void set_listener(Wire::Listener* listener) override { listener_ = listener; }
  ConnectionId connect(const PeerId& peer, const Address& address) override { return inner_.connect(peer, address); }
  Status send(ConnectionId connection, Lane lane, Bytes message) override;
  void disconnect(ConnectionId connection) override;
  Status admit_only(const std::vector<PeerId>& peers) override { return inner_.admit_only(peers); }
  void favour(const std::vector<PeerId>& peers) override { inner_.favour(peers); }
  std::string other_host(ConnectionId connection) const override { return inner_.other_host(connection); }
  void be_called_at(const std::vector<Address>& relays) override { inner_.be_called_at(relays); }
  bool relayed(ConnectionId connection) const override { return inner_.relayed(connection); }
  std::uint64_t bytes_sent() const override { return inner_.bytes_sent(); }
  RefusalCounts refusals() const override;

 private:
  struct Way {
    explicit Way(double bytes_per_second) : pace(bytes_per_second) {}
    BytePace pace;
    FairQueue waiting;
    TimerId timer = 0;
  };
  struct Connection {
    PeerId peer;
    bool busy = false;  // it was told that its bulk lane is full
  };
  // Wire::Listener
  void on_up(ConnectionId connection, const PeerId& peer, bool dialled) override;
  void on_bytes(ConnectionId connection, Lane lane, Bytes message) override;
  void on_writable(ConnectionId connection, Lane lane) override;
  void on_down(ConnectionId connection, const Error& cause) override;

  void pump_up();
  void pump_down();
  // Whether the next may pass now, in this callback, which passed so many bytes. False: `pump` is called when it may.
  bool may_pass(Way& way, std::uint64_t passed, void (CappedWire::*pump)());
  void end_flood(ConnectionId connection);
  void tell_writable(ConnectionId connection);
  void forget(ConnectionId connection);

  Wire& inner_;
  EventLoop& loop_;
  Wire::Listener* listener_ = nullptr;
  std::optional<Way> up_, down_;
  std::map<ConnectionId, Connection> connections_;  // those that are up
  RefusalBook refusals_;
  Lifetime lifetime_;
};

}  // namespace shoal
