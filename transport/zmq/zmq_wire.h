#pragma once
// Wire over ZeroMQ: CURVE on every connection, a key check in front, two lanes on two TCP connections, a thread of its
// own.
//
// The PeerId is an Ed25519 key; the connection's key is derived from it, so who speaks is proved and not claimed.
// Before the wire is handed out it is tried: a stranger that speaks under a foreign PeerId, and in keys mode one
// whose key is not admitted, must be refused.
//
// Thread: loop only; callbacks run on the loop. Admission may change at any time.   Borrows: the loop, which outlives
// the wire. Bounds: limits.h.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/crypto/sign.h"
#include "common/event_loop.h"
#include "transport/messages_membership.h"
#include "transport/wire.h"

namespace shoal {

enum class Admission { kOpen, kKeys };

struct ZmqWireOptions {
  KeyPair key;
  std::string listen;  // "host:port", which takes port + 1 too; port 0 = a free pair; empty = dial only
  Admission admission = Admission::kOpen;
  std::vector<PeerId> admitted;    // kKeys: these and nobody else
  std::vector<PeerId> favoured{};  // from the first connection on, as Wire::favour
  RunId run{};                     // in which relays know it; zero: it neither calls over one nor is called
};

class ZmqWire : public Wire {
 public:
  // Where it listens, with the port it got: "0.0.0.0:4700". Empty: dial only.
  virtual Address listening_address() const = 0;
  virtual void admit(const PeerId& peer) = 0;
  // From now on these relays ("host:port") alone are told of the run, by this newest list: its members may register
  // and call there, and strangers call this process, which is called there by be_called_at(). REQUIRES: the key is the
  // run's.
  virtual void publish_list(const std::vector<Address>& relays, const Members& list) = 0;
};

// ERRORS: kInput (address), kBusy (port in use, with the remedy), kIo (port not for this user), kRefused (the trial at
// start let a stranger in: nothing may run on it), kTimeout (the trial got no answer).
Result<std::unique_ptr<ZmqWire>> make_zmq_wire(EventLoop& loop, ZmqWireOptions options);

// The same where the address is known to others: while a port of it is in use, blocks the calling thread for at most
// `limit` until it is free. `in_use` is called once, before the wait; what it returns, if not ok, is the result.
// ERRORS: kBusy: still in use, without a remedy: that is the caller's to name.
Result<std::unique_ptr<ZmqWire>> make_zmq_wire_when_free(EventLoop& loop, const ZmqWireOptions& options, Duration limit,
                                                         const std::function<Status(const Error&)>& in_use);

}  // namespace shoal
