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
#include "transport/messages.h"
#include "transport/wire.h"

namespace shoal {

// Who is at the other end: the key is proved by the wire, the rest is said in its Hello.
struct Remote {
  PeerId peer;
  Session session;
  PeerRole role = PeerRole::kPeer;
};

using TransferId = std::uint64_t;  // frames of one message on one link; 0 = the message has no frames

struct LinkStats {
  bool up = false;
  Duration rtt{0};                 // smoothed; 0 = not measured yet
  double bytes_per_second = 0;     // measured delivery rate of bulk sends, EMA; 0 = not measured yet
  std::uint64_t queued_bytes = 0;  // frame bytes not sent yet
  std::uint64_t sent_bytes = 0, received_bytes = 0;
};

struct TransportCounters {  // refused input, by cause; for logs, tests and `--events`
  std::uint64_t malformed = 0, too_large = 0, foreign_run = 0, wrong_version = 0, stale_session = 0, duplicate = 0,
                corrupt = 0, refused = 0;
  std::uint64_t sent_bytes = 0, received_bytes = 0;
};

class Transport {
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

  virtual ~Transport() = default;
  virtual void set_listener(Listener* listener) = 0;
  virtual void set_addresses(std::vector<std::string> addresses) = 0;  // our own, for later Hellos
  // Where to dial `peer`. Links are made at the first send and again (with backoff 100 ms .. 5 s) at later sends after
  // a loss.
  virtual void learn(const PeerId& peer, std::vector<std::string> addresses) = 0;
  virtual void dial(const PeerId& peer) = 0;  // make the link now
  // Dials each of the addresses anew, whatever links stand, and hangs up when `peer` answers there with its key proved;
  // nothing is learnt. `done` runs once, in a later turn (never after this object is gone): success with the first that
  // answers, kUnreachable with what became of each.
  virtual void try_addresses(const PeerId& peer, const std::vector<std::string>& addresses,
                             std::function<void(Status)> done) = 0;
  // Queues behind what was sent before. Returns the transfer (0 without frames), to be dropped with drop().
  // ERRORS: kUnreachable (no link and no address), kBusy (queue full), kTooLarge.
  virtual Result<TransferId> send(const PeerId& peer, Message message, std::vector<Bytes> frames = {}) = 0;
  virtual void drop(const PeerId& peer, TransferId transfer) = 0;    // of ours: send no more of its frames
  virtual void refuse(const PeerId& peer, TransferId transfer) = 0;  // of theirs: we do not want its frames
  virtual void close(const PeerId& peer, const std::string& why) = 0;
  // Sessions that were fenced: their connections are closed and later Hellos refused by name (kStale).
  virtual void fence(const Session& session) = 0;
  virtual std::optional<Remote> remote(const PeerId& peer) const = 0;  // while up
  virtual LinkStats stats(const PeerId& peer) const = 0;
  virtual const TransportCounters& counters() const = 0;
};

// REQUIRES: wire and loop outlive it.
std::unique_ptr<Transport> make_transport(Wire& wire, EventLoop& loop, Transport::Options options);

}  // namespace shoal
