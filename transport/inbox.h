#pragma once
// The frames that arrive on one link: reserved at their header, filled chunk by chunk, checked, handed over whole.
// Headers and chunks travel on different lanes, so a chunk may come before its header: it waits, within the credit that
// let it be sent.
//
// Thread: loop only.   Owns: the buffers of unfinished transfers; a frame's buffer holds at most a few times what came
// of it (of a large one: has pages for what came). Bounds: kInboundBytesPerPeerMax reserved per link, `budget` over all
// links of the process; early chunks within the granted credit.
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "common/time.h"
#include "transport/envelope.h"

namespace shoal {

// Bytes that all links of a process together may have reserved.
struct InboundBudget {
  std::uint64_t limit = 0;
  std::uint64_t used = 0;
};

class Inbox {
 public:
  struct Finished {
    std::uint64_t transfer = 0;
    Result<std::vector<Bytes>> frames;
  };

  // `odd_transfers`: parity of the other end's numbers.
  Inbox(InboundBudget& budget, bool odd_transfers);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // Reserves memory for the frames. Chunks that came early are taken up by replay().
  // ERRORS: kMalformed (wrong parity), kStale (a number that is not above the last one: a duplicate), kTooLarge (limit
  // of the link or the process).
  Status on_header(const TransferHead& head);
  // Early chunks of the newest transfer; call after the listener saw its message.
  std::vector<Finished> replay();
  // At most one transfer finishes. ERRORS: kMalformed (more than was granted, out of order, beyond the end): the link
  // is broken.
  Result<std::vector<Finished>> on_chunk(Bytes chunk);
  // Not wanted any more, by us or by the sender. False: unknown, finished or dropped already.
  bool drop(std::uint64_t transfer);
  // The link is gone: the transfers that will not finish.
  std::vector<std::uint64_t> abandon();

  // Bytes to grant in addition, maybe none, when something was consumed that the sender does not know of: its line
  // waits for that. Grows the window towards 2 x arrival rate x rtt (of the way alone), within kByteCreditsInitial ..
  // kByteCreditsMax.
  std::optional<std::uint64_t> take_grant(TimePoint now, Duration rtt);

  bool waiting() const { return !active_.empty() || !early_.empty(); }
  std::uint64_t consumed_bytes() const {
    return consumed_;
  }  // chunk payloads taken out of the lane, discarded ones too
  std::uint64_t received_bytes() const { return received_; }  // chunk payloads arrived
  // What came of a transfer that is not whole, behind its header; 0: there is none.
  std::uint64_t received_of(std::uint64_t transfer) const {
    const auto found = active_.find(transfer);
    return found != active_.end() ? found->second.received : 0;
  }

 private:
  struct Frame {
    FrameHead head;
    Buffer buffer;
    std::uint64_t filled = 0;
    std::uint32_t crc = 0;
  };
  struct Incoming {
    std::vector<Frame> frames;
    std::uint64_t total = 0;
    std::uint64_t received = 0;
    std::size_t current = 0;
  };
  static void make_room(Frame& frame, std::uint64_t bytes);
  Status place(const ParsedChunk& chunk, std::vector<Finished>& finished);
  Finished finish(std::uint64_t id, Incoming incoming);
  void consumed(std::uint64_t bytes);
  void release(std::uint64_t bytes);

  InboundBudget& budget_;
  bool odd_;
  std::uint64_t last_header_ = 0;
  std::map<std::uint64_t, Incoming> active_;
  std::deque<Bytes> early_;
  std::uint64_t reserved_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t consumed_ = 0;
  std::uint64_t granted_;   // what the sender may still send, by our books
  std::uint64_t window_;    // target of bytes in flight
  std::uint64_t told_ = 0;  // of consumed_
  TimePoint measure_since_{};
  std::uint64_t measured_ = 0;
};

}  // namespace shoal
