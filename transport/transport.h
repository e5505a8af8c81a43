#pragma once
// Messages with frames between processes of one run: links over a Wire. A Link is chunking, byte credits, refusal of
// duplicates, of old sessions, of other runs and versions, checksums and reassembly limits. The same code runs over
// ZeroMQ and in the simulator.
//
// A message's header goes on the control lane, its frames in chunks on the bulk lane. The receiver sees the header at
// once and may refuse the frames: chunks not sent yet are then dropped by the sender, the rest is discarded unread.
// What a link carried when it went down is lost in both directions; nothing is repeated here. Thread: loop only.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/event_loop.h"
#include "common/ids.h"
#include "transport/links.h"
#include "transport/messages.h"
#include "transport/wire.h"

namespace shoal {

struct TransportCounters {  // refused input, by cause; for logs, tests and `--events`
  std::uint64_t malformed = 0, too_large = 0, foreign_run = 0, wrong_version = 0, stale_session = 0, duplicate = 0,
                corrupt = 0, refused = 0;
  std::uint64_t sent_bytes = 0, received_bytes = 0;
};

class Transport : public Links {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_link_up(const Remote& remote) = 0;
    // `remote.session` is zero when it never came up. Messages of this link will not be seen any more.
    virtual void on_link_down(const Remote& remote, const Error& cause) = 0;
    // `transfer` != 0: frames of `frame_bytes` in all follow by on_frames, unless refuse(remote.peer, transfer) is
    // called.
    virtual void on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) = 0;
    // All frames of a message, checked. Error: they will not come (link down, sender dropped them, corrupt).
    virtual void on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) = 0;
  };

  struct Options {
    RunId run;
    PeerId self;
    Session session;
    PeerRole role = PeerRole::kPeer;
    std::vector<std::string> addresses;  // told to others in Hello
  };

  virtual void set_listener(Listener* listener) = 0;
  virtual void set_addresses(std::vector<std::string> addresses) = 0;  // our own, for later Hellos
  virtual void dial(const PeerId& peer) = 0;                           // make the link now
  // Dials each of the addresses anew, whatever links stand, and hangs up when `peer` answers there with its key proved;
  // nothing is learnt. `done` runs once, in a later turn (never after this object is gone): success with the first that
  // answers, kUnreachable with what became of each.
  virtual void try_addresses(const PeerId& peer, const std::vector<std::string>& addresses,
                             std::function<void(Status)> done) = 0;
  virtual void close(const PeerId& peer, const std::string& why) = 0;
  // Sessions that were fenced: their connections are closed and later Hellos refused by name (kStale).
  virtual void fence(const Session& session) = 0;
  virtual const TransportCounters& counters() const = 0;
};

// REQUIRES: wire and loop outlive it.
std::unique_ptr<Transport> make_transport(Wire& wire, EventLoop& loop, Transport::Options options);

}  // namespace shoal
