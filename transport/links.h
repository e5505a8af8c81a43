#pragma once
// What is sent to and heard of the processes at the other ends of our links: the part of Transport that router/ needs.
// Thread: loop only.
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/result.h"
#include "common/time.h"
#include "transport/messages.h"

namespace shoal {

// The process at the other end: the key is proved by the wire, the rest is said in its Hello.
struct Remote {
  PeerId peer;
  Session session;
  PeerRole role = PeerRole::kPeer;
};

using TransferId = std::uint64_t;  // frames of one message on one link; 0 = the message has no frames

// Frames that are on their way here.
struct InboundFrames {
  PeerId peer;
  TransferId transfer = 0;
  auto operator<=>(const InboundFrames&) const = default;
};

struct LinkStats {
  bool up = false;
  bool relayed = false;            // it goes over a relay
  bool busy = false;               // something is under way on it
  Duration rtt{0};                 // smoothed; 0 = not measured yet
  double bytes_per_second = 0;     // measured delivery rate of bulk sends, EMA; 0 = not measured yet
  std::uint64_t queued_bytes = 0;  // frame bytes not sent yet
  std::uint64_t sent_bytes = 0, received_bytes = 0;
  TimePoint heard{};  // anything, also an answer to a ping; or we stood still ourselves until then
};

class Links {
 public:
  virtual ~Links() = default;
  // Where to dial `peer`, as the run's signed list says, which may be nowhere: its own word counts no more. Links are
  // made at the first send and again (with backoff 100 ms .. 5 s) at later sends after a loss.
  virtual void learn(const PeerId& peer, Whereabouts whereabouts) = 0;
  // Queues behind what was sent before. Returns the transfer (0 without frames), to be dropped with drop().
  // ERRORS: kUnreachable (no link and no address), kBusy (queue full), kTooLarge.
  virtual Result<TransferId> send(const PeerId& peer, Message message, std::vector<Bytes> frames = {}) = 0;
  // Whether a message can go there: a link is up, or there is an address or a relay to dial.
  virtual bool reaches(const PeerId&) const { return true; }
  // Whether it would go over a relay: its link does, or there is none and no address.
  virtual bool needs_relay(const PeerId&) const { return false; }
  virtual void dial(const PeerId&) {}                              // make the link now, if there is none
  virtual void drop(const PeerId& peer, TransferId transfer) = 0;  // of ours: send no more of its frames
  // Frame bytes that are not sent yet, of this transfer of ours and those before it; 0: all of it went out.
  virtual std::uint64_t ahead_of(const PeerId& peer, TransferId transfer) const = 0;
  virtual void refuse(const PeerId& peer, TransferId transfer) = 0;    // of theirs: we do not want its frames
  virtual std::optional<Remote> remote(const PeerId& peer) const = 0;  // while up
  virtual LinkStats stats(const PeerId& peer) const = 0;
};

}  // namespace shoal
