#pragma once
// The lowest seam of the network: whole byte messages to a process whose key is proved. Only Wire has two
// implementations: transport/zmq/zmq_wire.h (ZeroMQ, CURVE) and sim/sim_wire.h (virtual network). Both pass
// tests/transport/wire_contract.h.
//
// A connection is one pair of lanes between two processes, dialled by one of them and used by both directions. Two
// lanes, so that control never waits behind bulk. Messages of one lane arrive whole, unaltered and in order, or the
// connection goes down; nothing is promised between lanes.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/result.h"

namespace shoal {

enum class Lane : std::uint8_t { kControl = 0, kBulk = 1 };
using ConnectionId = std::uint64_t;  // never 0, never reused in a process

// As parse_dial_address() reads it. Where it names no port of the bulk lane, the handshake does (see docs/WIRE.md).
using Address = std::string;

// Why something was turned away before it became a message of a link.
enum class Refusal : std::uint8_t {
  kKey,          // not admitted
  kKeyExchange,  // never completed: another protocol, no CURVE, silence
  kGreeting,     // malformed, late, for the other lane, or with no place for it
  kForeignPeer,  // greeted under a PeerId that is not the proved key's
  kLaneVersion,  // greeted in another version
  kMessage,      // of several parts, or before the second lane
  kEndless,      // bytes without a whole message (transport/zmq/byte_watchdog.h)
  kFlood,        // more than is read, without regard to byte credits
  kCrowd,        // one too many that did not greet, or whose peer is no member
};
inline constexpr std::size_t kRefusalKinds = 9;
using RefusalCounts = std::array<std::uint64_t, kRefusalKinds>;
std::string_view name_of(Refusal cause);  // "key", "key exchange", ...

// Thread: loop only. Callbacks run on the loop, never from inside a call to the Wire.
class Wire {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // Both lanes stand and `peer` proved its key. `dialled` = our connect() made it.
    virtual void on_up(ConnectionId connection, const PeerId& peer, bool dialled) = 0;
    virtual void on_bytes(ConnectionId connection, Lane lane, Bytes message) = 0;
    // A lane that had answered kBusy takes messages again.
    virtual void on_writable(ConnectionId connection, Lane lane) = 0;
    // Also for a connect() that failed: kUnreachable, kNotAdmitted (our key), kRefused (identity not proved),
    // kTimeout, kMalformed, kBusy (a bound of a relay's). Last call for this id.
    virtual void on_down(ConnectionId connection, const Error& cause) = 0;
  };

  virtual ~Wire() = default;
  virtual void set_listener(Listener* listener) = 0;  // before anything else
  // Starts dialling; the outcome is on_up or on_down with the returned id.
  virtual ConnectionId connect(const PeerId& peer, const Address& address) = 0;
  // ERRORS: kBusy (queue full: on_writable follows), kUnreachable (no such connection), kTooLarge.
  virtual Status send(ConnectionId connection, Lane lane, Bytes message) = 0;
  // on_down is not called for it.
  virtual void disconnect(ConnectionId connection) = 0;
  // From now on only these may dial us: others are refused with kNotAdmitted at their end, and what others dialled
  // before goes down with kRefused here. Connections that we dial, or dialled, are as before. ERRORS: kRefused,
  // kTimeout: it was tried and a stranger was let in; nothing may run on it.
  virtual Status admit_only(const std::vector<PeerId>& peers) = 0;
  // From now on only so many of the connections that others dialled are kept, unless they are of these peers: one too
  // many goes down with kRefused. Nothing where an implementation has no strangers.
  virtual void favour(const std::vector<PeerId>&) {}
  // The host that the other end of a connection that is up has, as this end sees it: an IP address, without a port.
  // Empty: not known, or no such connection.
  virtual std::string other_host(ConnectionId) const { return {}; }
  // From now on others can call this process at these relays ("host:port"), and at no others: where they cannot dial
  // it. What is called comes up as what is dialled does. Nothing where an implementation has no relays.
  virtual void be_called_at(const std::vector<Address>&) {}
  // Whether the connection goes over a relay.
  virtual bool relayed(ConnectionId) const { return false; }
  // Bytes given to sockets so far, headers included as far as the implementation can tell.
  virtual std::uint64_t bytes_sent() const = 0;
  // So far, by cause; nothing where an implementation has no strangers.
  virtual RefusalCounts refusals() const { return {}; }
};

}  // namespace shoal
