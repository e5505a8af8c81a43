#pragma once
// What waits to be sent to one peer: envelopes for the control lane, frames for the bulk lane, cut into chunks as byte
// credits allow. Lives as long as its peer is known; clear() when the connection that carried it is gone.
//
// Thread: loop only.   Borrows: nothing; frames are shared, not copied, until their chunk is made.
// Bounds: kOutboundQueueMax envelopes, kOutboundBytesMax frame bytes; bytes in flight never exceed what the receiver
// granted, nor what fills the line (line_fill.h).
#include <cstdint>
#include <deque>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "transport/limits.h"
#include "transport/line_fill.h"
#include "transport/messages.h"
#include "transport/wire.h"

namespace shoal {

class Outbox {
 public:
  // Both ends number their transfers with a parity of their own, so that DropTransfer names one of either without
  // doubt.
  explicit Outbox(bool odd_transfers) : next_transfer_(odd_transfers ? 1 : 2) {}

  // The transfer's number, 0 without frames. ERRORS: kBusy (queue full), kTooLarge.
  Result<std::uint64_t> push(const Message& message, std::vector<Bytes> frames);
  // Link messages (ping, credit, drop) are not held to the queue's bound: callers look at crowded() before they answer.
  void push_link_message(const Message& message);
  // Frames not cut yet are forgotten. False: the transfer is unknown or all of it was sent.
  bool drop(std::uint64_t transfer);

  // Frame bytes not cut yet, of this transfer and those before it; 0: all of it was sent, or it is unknown.
  std::uint64_t ahead_of(std::uint64_t transfer) const;

  // A new connection starts with the initial credit.
  void open();
  // False: more than any receiver may grant.
  bool add_credit(std::uint64_t bytes);
  struct Sent {
    std::uint64_t control_bytes = 0;
    std::uint64_t chunk_payload_bytes = 0;
    std::uint64_t bulk_bytes = 0;
  };
  // Gives the wire what it, the credits and the line take now; chunks, which are copied here, until they hold
  // `bulk_max` bytes.
  Sent pump(Wire& wire, ConnectionId connection, LineFill& line, TimePoint now, std::uint64_t bulk_max);
  void clear();

  std::uint64_t queued_bytes() const { return queued_bytes_; }
  bool empty() const { return control_.empty() && transfers_.empty(); }
  // Answers of the link itself wait or are left out: the other end does not read, but asks.
  bool crowded() const { return control_.size() >= limits::kOutboundQueueMax; }

 private:
  struct Transfer {
    std::uint64_t id = 0;
    std::vector<Bytes> frames;
    std::uint64_t total = 0;
    std::uint64_t sent = 0;
  };

  std::deque<Bytes> control_;
  std::deque<Transfer> transfers_;
  std::uint64_t next_transfer_;
  std::uint64_t queued_bytes_ = 0;
  std::uint64_t credit_ = 0;
};

}  // namespace shoal
