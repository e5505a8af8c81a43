#pragma once
// One connection's protocol: Hello both ways before anything else, then messages with frames, liveness and rates.
//
//   greeting --(their Hello is accepted)--> up --(violation, silence, close)--> over
//
// The end with the smaller PeerId *chooses*: it answers a Hello only on the connection that shall be the link of the
// pair, so that two that dial each other at once agree on one and lose nothing. The other end says Hello as soon as the
// connection stands. A program that cannot be talked to (other version, other run, old session) is told before it is
// cut off: Hello names version and run, Fenced the session.
//
// Thread: loop only.   Borrows: everything it is given; its owner keeps it alive through its callbacks (it may be
// `over` after any of them). Bounds: outbox.h, inbox.h, limits.h.
#include <cstdint>
#include <string>

#include "common/bulk_bytes.h"
#include "common/event_loop.h"
#include "common/lifetime.h"
#include "transport/inbox.h"
#include "transport/limits.h"
#include "transport/line_fill.h"
#include "transport/links.h"
#include "transport/messages.h"
#include "transport/outbox.h"
#include "transport/rate_meter.h"
#include "transport/token_bucket.h"
#include "transport/wire.h"

namespace shoal {

struct TransportCounters {  // refused input, by cause; for logs, tests and `--events`
  std::uint64_t malformed = 0, too_large = 0, foreign_run = 0, wrong_version = 0, stale_session = 0, duplicate = 0,
                corrupt = 0, refused = 0;
  std::uint64_t sent_bytes = 0, received_bytes = 0;
  std::uint64_t relayed_bytes = 0;                         // of those sent
  std::uint64_t dialled_direct = 0, dialled_by_relay = 0;  // connections that we dialled and that stood
  std::uint64_t add_sent(std::uint64_t bytes, bool relayed) {
    sent_bytes += bytes;
    relayed_bytes += relayed ? bytes : 0;
    return bytes;
  }
};

class Link {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual Hello our_hello() const = 0;
    // Run, version and session tag fit. ERRORS: the link is refused with it; kStale is told to the other end by a
    // Fenced.
    virtual Status admit(Link& link, const Hello& hello) = 0;
    virtual void on_link_open(Link& link) = 0;  // after our Hello was sent
    virtual void on_link_message(Link& link, Message message, TransferId transfer, std::uint64_t frame_bytes) = 0;
    virtual void on_link_frames(Link& link, TransferId transfer, Result<std::vector<Bytes>> frames) = 0;
    // The link is over; the owner disconnects. Called once, never after close().
    virtual void on_link_failed(Link& link, const Error& cause) = 0;
  };

  struct Parts {
    Wire& wire;
    EventLoop& loop;
    Owner& owner;
    Outbox& outbox;
    InboundBudget& budget;
    TransportCounters& counters;
  };

  Link(Parts parts, ConnectionId connection, const PeerId& self, const PeerId& peer, const RunId& run, bool dialled);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void start();
  void on_bytes(Lane lane, Bytes bytes);
  // Outbox -> wire; no-op unless up. One of many chunks goes now, since a callback may send to many peers, and the rest
  // in later callbacks.
  void pump();
  // What the wire refused of this connection counts like what the link refuses.
  void count(const Error& cause) { note(cause); }
  void refuse(TransferId transfer);
  void drop(TransferId transfer);
  // No callback follows. `farewell`: sent before silence, when the lane takes it.
  void close(const Message* farewell = nullptr);
  std::vector<std::uint64_t> abandon_inbound() { return inbox_.abandon(); }

  ConnectionId connection() const { return connection_; }
  const PeerId& peer() const { return remote_.peer; }
  const Remote& remote() const { return remote_; }
  bool up() const { return state_ == State::kUp; }
  bool over() const { return state_ == State::kOver; }
  bool dialled() const { return dialled_; }
  TimePoint since() const { return since_; }  // when it came up
  LinkStats stats() const;
  std::uint64_t received_of(TransferId transfer) const { return inbox_.received_of(transfer); }

 private:
  enum class State { kGreeting, kUp, kOver };
  static constexpr std::uint64_t kBulkAtOnce = kBulkBytesMax / 4;  // packed in one of these callbacks

  void pump(std::uint64_t bulk_max);
  void on_control(ByteView bytes);
  void on_greeting(ByteView bytes);
  void on_hello(const Hello& hello);
  void on_chunk(Bytes bytes);
  void on_up_message(Envelope envelope);
  bool on_link_message(const Message& message);  // false: not one of the link's own
  void on_byte_credit(const ByteCredit& credit);
  void deliver(Envelope envelope);
  void hand_over(std::vector<Inbox::Finished> finished);
  void give_credit();
  void tick();
  void ping(TimePoint now);
  void send_now(const Message& message);
  void fail(const Error& cause);  // of their doing: counted, logged
  void end(const Error& cause);
  Error refused_by(const Fenced& fenced) const;
  void note(const Error& cause);
  // A control message that came whole and makes no sense: noted; one too many ends the link.
  void offence(const Error& cause);

  Parts parts_;
  ConnectionId connection_;
  Remote remote_;
  RunId run_;
  bool dialled_;
  bool chooses_;
  State state_ = State::kGreeting;
  Inbox inbox_;
  RateMeter meter_;
  LineFill line_;
  TokenBucket messages_{limits::kMessagesPerSecondMax, limits::kMessagesBurstMax};
  std::uint32_t offences_ = 0;
  TimePoint since_{};
  TimePoint heard_{}, chunk_heard_{}, worked_{}, ticked_{};  // worked_: brought more than pings
  TimerId timer_ = 0;
  std::uint64_t nonce_ = 0;
  TimePoint pinged_{};
  Duration rtt_{0};        // smoothed
  Duration least_rtt_{0};  // lately: without what loops and queues add
  std::uint64_t bulk_sent_ = 0, their_consumed_ = 0;
  bool chunks_due_ = false;  // a callback that sends some is posted
  std::uint64_t sent_bytes_ = 0, received_bytes_ = 0;
  Lifetime lifetime_;
};

// What any Hello must satisfy. ERRORS: kVersion, kForeign, kRefused (a session that is not this peer's), kTooLarge.
Status check_hello(const Hello& hello, const PeerId& peer, const RunId& run);
// Counts a refusal by its cause.
void count_refusal(TransportCounters& counters, ErrorCode code);

}  // namespace shoal
